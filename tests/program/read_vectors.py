"""read_vectors.py: reads colour vectors and links as the descriptions of their formats have them, with
struct and zlib, and checks what they mean in MILC's convention. No line of it is shared with minidirac.

    read_vectors.py sums FILE                    prints the checksums of all vectors; they must fit
    read_vectors.py solves LINKS.lime MASS FILE  (2 m + D') x = b for the pairs of a SciDAC file
    read_vectors.py modes LINKS.lime FILE        -D' D' v = value v on even sites, all sites of odd zero
    read_vectors.py same FILE FILE...            the vectors of all are those of the first, but for rounding
    read_vectors.py source FILE OUT [DIMS]       writes the first source of a SciDAC file alone, with DIMS as if it
                                                 were on a part of a lattice "X Y Z T"
"""
import re
import struct
import sys
import zlib


def rotated(word, by):
    return ((word << by) | (word >> (32 - by))) & 0xFFFFFFFF if by else word


def scidac_sums(data, site_bytes):
    a = b = 0
    for r in range(len(data) // site_bytes):
        c = zlib.crc32(data[r * site_bytes : (r + 1) * site_bytes])
        a ^= rotated(c, r % 29)
        b ^= rotated(c, r % 31)
    return a, b


def milc_sums(data):
    a = b = 0
    for i, word in enumerate(struct.unpack(">%dI" % (len(data) // 4), data)):
        a ^= rotated(word, i % 29)
        b ^= rotated(word, i % 31)
    return a, b


def complexes(data, real_bytes):
    reals = struct.unpack(">%d%s" % (len(data) // real_bytes, "d" if real_bytes == 8 else "f"), data)
    return [complex(re_, im) for re_, im in zip(reals[::2], reals[1::2])]


def lime_records(data):
    at, records = 0, []
    while at < len(data):
        magic, version, _, length = struct.unpack(">IHHQ", data[at : at + 16])
        assert (magic, version) == (0x456789AB, 1), "a LIME record at byte %d" % at
        records.append((data[at + 16 : at + 144].rstrip(b"\0").decode(), data[at + 144 : at + 144 + length]))
        at += 144 + (length + 7) // 8 * 8
    return records


def tag(text, name):
    return re.search("<%s>(.*?)</%s>" % (name, name), text, re.S).group(1)


def read_lime(data):
    """dims, [(words, site bytes, data)]"""
    dims, found, private, words = None, [], None, ""
    for kind, body in lime_records(data):
        text = "" if kind.endswith("binary-data") else body.rstrip(b"\0").decode()
        if kind == "scidac-private-file-xml":
            dims = [int(n) for n in tag(text, "dims").split()]
        elif kind == "scidac-private-record-xml":
            private = text
        elif kind == "scidac-record-xml":
            words = text
        elif kind.endswith("binary-data"):
            typesize, count = int(tag(private, "typesize")), int(tag(private, "datacount"))
            found.append([words, typesize * count, body, 8 if tag(private, "precision") == "D" else 4])
        elif kind == "scidac-checksum":
            sums = int(tag(text, "suma"), 16), int(tag(text, "sumb"), 16)
            assert sums == scidac_sums(found[-1][2], found[-1][1]), "the sums of record %d" % len(found)
            print("%08x %08x" % sums)
    return dims, found


def read_vectors(path):
    """dims, [(words, one list of colour vectors in lexicographic order)]"""
    with open(path, "rb") as file:
        data = file.read()
    magic = struct.unpack(">I", data[:4])[0]
    if magic == 0x456789AB:
        dims, found = read_lime(data)
        return dims, [(words, complexes(body, real_bytes)) for words, _, body, real_bytes in found]
    if magic == 0x5AA9:  # MILC's
        dims, order = struct.unpack(">4i", data[4:20]), struct.unpack(">i", data[84:88])[0]
        bytes_, at, found = 24 * dims[0] * dims[1] * dims[2] * dims[3], 88, []
        assert order == 0 and len(data) == 88 + 3 * (12 + bytes_), "a KS propagator's length"
        for colour in range(3):
            number, sum29, sum31 = struct.unpack(">3I", data[at : at + 12])
            body = data[at + 12 : at + 12 + bytes_]
            assert number == colour and (sum29, sum31) == milc_sums(body), "the sums of colour %d" % colour
            found.append(("", complexes(body, 4)))
            at += 12 + bytes_
        return list(dims), found
    assert magic == 0x71626434, "magic number %x" % magic  # the Fermilab file
    _, element, elements, *rest = struct.unpack(">8i", data[4:36])
    dims, body = rest[:4], data[36:]
    assert (element, elements, rest[4]) == (4, 18, 0) and len(body) == 72 * dims[0] * dims[1] * dims[2] * dims[3]
    numbers = complexes(body, 4)
    return list(dims), [("", [n for i in range(0, len(numbers), 9) for n in numbers[i + 3 * c : i + 3 * c + 3]]) for c in range(3)]


def read_links(path):
    with open(path, "rb") as file:
        dims, found = read_lime(file.read())
    return dims, complexes(found[0][2], found[0][3])


def milc_dslash(dims, links, v):
    """D' of MILC: sum_mu eta_mu(x) [U_mu(x) v(x+mu) - U_mu(x-mu)^dag v(x-mu)], phases in the order t, x,
    y, z, antiperiodic in t; no factor of 1/2."""

    def index(x):
        return x[0] + dims[0] * (x[1] + dims[1] * (x[2] + dims[2] * x[3]))

    out = []
    for r in range(len(v) // 3):
        x, rest = [], r
        for extent in dims:
            x.append(rest % extent)
            rest //= extent
        phase = [(-1) ** x[3], (-1) ** (x[3] + x[0]), (-1) ** (x[3] + x[0] + x[1]), 1]
        sums = [0j, 0j, 0j]
        for mu in range(4):
            for step in (1, -1):
                y = list(x)
                y[mu] = (x[mu] + step) % dims[mu]
                wraps = mu == 3 and not 0 <= x[3] + step < dims[3]
                sign = phase[mu] * step * (-1 if wraps else 1)
                u, n = 9 * (4 * (r if step > 0 else index(y)) + mu), 3 * index(y)
                for i in range(3):
                    for j in range(3):
                        link = links[u + 3 * i + j] if step > 0 else links[u + 3 * j + i].conjugate()
                        sums[i] += sign * link * v[n + j]
        out += sums
    return out


def norm(v):
    return sum(abs(n) ** 2 for n in v) ** 0.5


def solves(links_path, mass, path):
    dims, links = read_links(links_path)
    there, found = read_vectors(path)
    assert dims == there and len(found) % 2 == 0 and found, "pairs of source and solution"
    for i in range(0, len(found), 2):
        (source_words, b), (words, x) = found[i], found[i + 1]
        assert "<usqcdSourceInfo>" in source_words and "<usqcdKSPropInfo>" in words
        assert int(tag(words, "color")) == i // 2 % 3
        rest = [bi - 2 * mass * xi - dx for bi, xi, dx in zip(b, x, milc_dslash(dims, links, x))]
        assert norm(rest) <= 1e-8 * norm(b), "residual %g" % (norm(rest) / norm(b))
        assert 'mass = %.17g' % mass in words and 'milc_mass = %.17g' % (2 * mass) in words


def modes(links_path, path):
    dims, links = read_links(links_path)
    _, found = read_vectors(path)
    assert found
    for words, v in found:
        value = float(tag(words, "eigVal"))
        w = milc_dslash(dims, links, milc_dslash(dims, links, v))
        off = norm([-wi - value * vi for wi, vi in zip(w, v)])
        assert off <= 1e-5 and abs(norm(v) - 1) <= 1e-6, "mode %g: off by %g" % (value, off)


def same(paths):
    first = [v for words, v in read_vectors(paths[0])[1] if "usqcdSourceInfo" not in words]
    for path in paths[1:]:
        other = [v for words, v in read_vectors(path)[1] if "usqcdSourceInfo" not in words]
        assert len(first) == len(other)
        for a, b in zip(first, other):
            assert norm([ai - bi for ai, bi in zip(a, b)]) <= 1e-6 * norm(a), path


def source(path, out, dims=None):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    with open(out, "wb") as file:
        for n in range(6):  # two of the file, four of the vector
            head, length = data[at : at + 144], struct.unpack(">Q", data[at + 8 : at + 16])[0]
            body = data[at + 144 : at + 144 + length]
            if dims:
                body = re.sub(rb"<dims>.*</dims>", b"<dims>%s </dims>" % dims.encode(), body)
                body = body.replace(b"<recordtype>0<", b"<recordtype>1<")
            file.write(head[:8] + struct.pack(">Q", len(body)) + head[16:] + body + bytes(-len(body) % 8))
            at += 144 + (length + 7) // 8 * 8


what, arguments = sys.argv[1], sys.argv[2:]
if what == "sums":
    read_vectors(arguments[0])
elif what == "solves":
    solves(arguments[0], float(arguments[1]), arguments[2])
elif what == "modes":
    modes(*arguments)
elif what == "same":
    same(arguments)
elif what == "source":
    source(*arguments)
else:
    sys.exit(__doc__)
