#!/usr/bin/env python3
"""Writes gpt2_tokenizer.json for gpt2_tokenizer.cpp: texts and their tokens, by Hugging Face's tokenizers.

Run it with a Python that has tokenizers, naming the folder of GPT-2's vocabulary:
python3 tests/examples/make_gpt2_tokenizer_fixtures.py $RUSH_DATA/gpt2
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

folder = pathlib.Path(sys.argv[1])
tokenizer = Tokenizer(models.BPE.from_file(str(folder / "encoder.json"), str(folder / "vocab.bpe")))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True)])

SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u180e\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "I'm sure they'll say we've won; it's what you'd expect, don't you're 'll 'S 'LL 'tis ''s '",
    "it’s I’m",
    "a  b   c    d\n\n\ne \n f\t\tg \t h\r\nend  ",
    "   leading and trailing   \n",
    "\n\n\n",
    "x\n\n  y",
    "non\xa0breaking\xa0 \xa0space \xa0",
    "3.14159 1,000,000 007 x² 10³ ½ Ⅷ ⅻ ① ٣٤٥ १२३ 〇一二 ９９ ᛮ",
    "e\u0301 n\u0303o \u0301 cafe\u0301s a\u0300\u0316b ก็ நி हिन्दी שָׁלוֹם العَرَبِيَّة",
    "naïve façade Ångström Straße ﬁne ǅ ʰ ª º",
    "漢字かな交じり文、カタカナ。中文字符 한국어 조선말",
    "Привет, мир! Γειά σου Κόσμε Ὀδυσσεύς ԱԲԳ ქართული",
    "😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽 ☃ ♥ © ™",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β) → ∞ ‰ €100 £5 ¥",
    "def f(x):\n    return x**2  # comment\n\n\tif (a[i] != b->c) { printf(\"%d\\n\", i++); }\n",
    "https://example.org/path?query=1&other=%20#fragment user@example.com",
    "<|endoftext|>one<|endoftext|><|endoftext|> two <|endoftext|",
    "".join(f"a{space}b{space}{space}" for space in SPACES) + SPACES,
    "zero\u200bwidth\u200d \u200c\ufeffbom \u00adsoft\u0000null\u0001\u007f",
    "\U00010400\U00010428 \U0001d49c\U0001d7d8 \U00020000\U0002a6d6 \U000e0041 \U0010ffff \ue000 \ufffd",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "antidisestablishmentarianism SolidGoldMagikarp  TheNitromeFan rawdownloadcloneembedreportprint",
    "----------------------------------------------------------------  ========  ......  !!!???",
]

cases = [{"text": text, "tokens": tokenizer.encode(text).ids} for text in TEXTS]
lines = [json.dumps(case, separators=(",", ":")) for case in cases]
pathlib.Path(__file__).with_name("gpt2_tokenizer.json").write_text("[" + ",\n".join(lines) + "]\n")
