# Sourced: pion correlators at mass 0.1, antiperiodic, of a point source at the origin.
# Of the lattice in inputs/: by a program that shares no code with this one (plain loops over the
# bare links of the ILDG file, CG on M^dag M of the whole lattice), which agrees to 1e-13.
own_lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
own_correlator='[2.385030218467806, 0.785105886859882, 0.3077450656917797, 0.1415754274918317, 0.1118297102590004, 0.1709774865898543, 0.3990977604497957, 0.9458637626141932]'
# Of lat.sample.l4448, which other tests look for beside the tree.
shared_correlator='[2.560955983842016, 1.034464452603123, 0.5897258600773996, 0.3491443973228939, 0.2298115278269385, 0.2840038752248707, 0.4973365186200647, 1.024466580197261]'
