"""Write with PyTorch when told to, a line of JSON for each turn.

Run by write_tokens.py in an interpreter that has torch, transformers and gguf.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def main() -> None:
    path, ids, tokens, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model = AutoModelForCausalLM.from_pretrained(
        Path(path).parent,
        gguf_file=Path(path).name,
        dtype=torch.float32,
        attn_implementation="eager",
    ).eval()
    prompt = torch.tensor([json.loads(ids)])

    @torch.inference_mode()
    def write() -> tuple[list[float], list[int]]:
        out = model(prompt, use_cache=True)
        times, says = [], []
        for _ in range(int(tokens)):
            token = out.logits[:, -1:].argmax(-1)
            says.append(token.item())
            start = time.perf_counter()
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
            times.append(time.perf_counter() - start)
        return times, says

    print(json.dumps({"says": write()[1]}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"median": statistics.median(write()[0])}), flush=True)


if __name__ == "__main__":
    main()
