"""Write scikit-learn's digits as two RecordIO files of PNG images. Arguments: the wheel of scikit-learn, the folder.

1797 images of 8 x 8 pixels in 17 grays: a part of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak, UCI
Machine Learning Repository, under CC BY 4.0. Every sixth image is for the validation.
"""

import gzip
import hashlib
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import mxnet as mx

MEMBER = "sklearn/datasets/data/digits.csv.gz"
SIDE, GRAYS, PART = 8, 16, 6


def main(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        lines = gzip.decompress(archive.read(MEMBER)).decode().split()
    images = [[int(float(number)) for number in line.split(",")] for line in lines]
    Path(folder).mkdir(parents=True)
    validation = images[::PART]
    training = [image for number, image in enumerate(images) if number % PART]
    for name, chosen in (("train", training), ("val", validation)):
        path = Path(folder, f"{name}.rec")
        writer = mx.recordio.MXRecordIO(str(path), "w")
        for number, image in enumerate(chosen):
            header = mx.recordio.IRHeader(0, float(image[-1]), number, 0)
            writer.write(mx.recordio.pack(header, png(image[:-1])))
        writer.close()
        print(name, len(chosen), hashlib.sha256(path.read_bytes()).hexdigest())


def png(grays):
    """Return a gray image as PNG."""
    rows = b"".join(
        b"\0" + bytes(gray * 255 // GRAYS for gray in grays[at : at + SIDE]) for at in range(0, SIDE**2, SIDE)
    )
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text)) for kind, text in parts
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
