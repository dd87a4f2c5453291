"""Make emoji.npz from the font Noto Color Emoji and the names of the Unicode standard.

apt-get install fonts-noto-color-emoji && pip install fonttools pillow
python -m tools.data.make_emoji [path of NotoColorEmoji.ttf]

The font keeps a PNG picture of 136 by 128 pixels for each emoji (table CBDT). It is laid on white,
made smaller by averaging, and rounded to 32 steps of brightness in each colour.
"""

import io
import sys
import unicodedata
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tinyattn" / "data"

FONT = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
SIZE, STEPS = 24, 31
SKIN = range(0x1F3FB, 0x1F400)  # Fitzpatrick modifiers


def caption(code):
    """The Unicode name in lower case: "GRINNING CAT FACE WITH SMILING EYES" without hyphens."""
    name = unicodedata.name(chr(code), "").lower().replace("-", " ")
    if name.startswith("cjk unified"):
        return "cjk ideograph"  # their names are but numbers
    return " ".join("".join(c if c.isalnum() else " " for c in name).split())


def picture(png):
    """RGB [SIZE, SIZE, 3], 0 to STEPS: on white, in the middle of a square, averaged down."""
    from PIL import Image

    drawn = Image.open(io.BytesIO(png)).convert("RGBA")
    side = max(drawn.size)
    square = Image.new("RGBA", (side, side), "white")
    square.alpha_composite(drawn, ((side - drawn.width) // 2, (side - drawn.height) // 2))
    small = square.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BOX)
    return np.rint(np.asarray(small, float) * STEPS / 255).astype(np.uint8)


def make(font_path, path):
    from fontTools.ttLib import TTFont

    font = TTFont(font_path)
    pictures = font["CBDT"].strikeData[0]
    images, captions, codes, seen = [], [], [], set()
    for code, glyph in sorted(font.getBestCmap().items()):
        words = caption(code)
        if code < 0x80 or not words or glyph not in pictures or code in SKIN:
            continue
        if 0x1F1E6 <= code <= 0x1F1FF or code >= 0xE0000 or glyph in seen:
            continue  # letters of flags, tags
        seen.add(glyph)
        images.append(picture(pictures[glyph].imageData))
        captions.append(words)
        codes.append(code)
    plain = ~np.all(np.array(images).reshape(len(images), -1) == STEPS, axis=1)
    keep = np.flatnonzero(plain)
    np.savez_compressed(
        path,
        pixels=np.array(images)[keep],
        captions=np.array("\n".join(captions[i] for i in keep)),
        codes=np.array(codes, np.uint32)[keep],
    )
    print(f"{len(keep)} emoji, {path.stat().st_size} bytes")


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else FONT, DATA / "emoji.npz")
