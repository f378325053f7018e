"""Numbers that pages without cells show: computed at build time, never typed.

A page in ``book/`` writes ``{{ qwen_kib_per_token }}``; a chapter computes its
numbers in cells of its own.
"""

from attnbook.cost import CONFIGS


def numbers() -> dict[str, str]:
    """Return each number by the name that pages use for it."""
    qwen = CONFIGS["Qwen2-7B"]
    return {
        "qwen_query_heads": f"{qwen.heads}",
        "qwen_kv_heads": f"{qwen.kv_heads}",
        "qwen_kib_per_token": f"{qwen.kv_cache_bytes(1) / 2**10:.0f}",
        "qwen_gib_at_131072": f"{qwen.kv_cache_bytes(131_072) / 2**30:.1f}",
        "qwen_level_keys": f"{qwen.level_keys():,}",
    }


def _configure(app, config) -> None:
    config.myst_substitutions = {**config.myst_substitutions, **numbers()}


def setup(app):
    app.connect("config-inited", _configure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
