# Sourced: pion correlators at mass 0.1, antiperiodic, of a point source at the origin.
# Of the lattice in inputs/: by a program that shares no code with this one (plain loops over the
# bare links of the ILDG file, CG on M^dag M of the whole lattice), which agrees to 1e-13.
own_lattice=$source_dir/inputs/beta5.7_4x4x4x8.lime
own_correlator='[2.385030218467806, 0.785105886859882, 0.3077450656917797, 0.1415754274918317, 0.1118297102590004, 0.1709774865898543, 0.3990977604497957, 0.9458637626141932]'
# Of the same lattice with fat and long links, by a second program of that kind: paths walked link by link,
# projection by Newton's iteration for the polar decomposition; it agrees to 1e-12. HISQ with naik-epsilon 0.2,
# asqtad with u0 0.9.
own_hisq_correlator='[1.12075562597719, 0.235233031828695, 0.10229836711359, 0.025501854101279, 0.0422628218326253, 0.0428710868445816, 0.146519656100118, 0.295623252833378]'
own_asqtad_correlator='[1.70585362244806, 0.410544825100182, 0.156030984386533, 0.0445504777050533, 0.0568405848986881, 0.0665862321756491, 0.216353411889425, 0.565790816936299]'
# The lowest eigenvalues of -Deo Doe of naive links on it, antiperiodic: of the matrix as a whole, by LAPACK.
own_eigenvalues='[0.00320250755055196, 0.00483947332444796, 0.00760395103991251, 0.0108214606611478, 0.0142145911681947, 0.0186972550179889, 0.0209962263553277, 0.0237789751733235]'
# Of lat.sample.l4448, which other tests look for beside the tree.
shared_correlator='[2.560955983842016, 1.034464452603123, 0.5897258600773996, 0.3491443973228939, 0.2298115278269385, 0.2840038752248707, 0.4973365186200647, 1.024466580197261]'
