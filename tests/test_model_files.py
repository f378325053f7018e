"""Files of models are read to the bit, checked first, and never trusted."""

import json
import struct
import subprocess
import sys
from importlib import metadata

import gguf
import numpy as np
import pytest

from attnbook.pretrained import BrokenFile, ModelUnavailable, files
from attnbook.pretrained.gguf import Gguf
from attnbook.pretrained.safetensors import read_safetensors

MODELS = [files.SMOLLM2, files.MINILM]


def test_the_book_reads_the_same_bits_as_the_package_of_the_format():
    path = files.find(files.SMOLLM2)
    ours, theirs = Gguf(path), gguf.GGUFReader(path)
    assert len(theirs.tensors) == len(ours.shapes) == 272
    for tensor in theirs.tensors:
        expected = gguf.dequantize(tensor.data, tensor.tensor_type)
        array = ours.array(tensor.name)
        assert array.dtype == np.float32
        assert array.shape == ours.shapes[tensor.name] == expected.shape
        assert array.tobytes() == expected.astype(np.float32).tobytes(), tensor.name
    # The package also lists what stands before the pairs, under such names.
    said = {
        name: field.contents()
        for name, field in theirs.fields.items()
        if not name.startswith("GGUF.")
    }
    assert ours.values == said


@pytest.fixture
def small(tmp_path):
    """A small file that the format's own package has written, and what is in it."""
    rng, path = np.random.default_rng(0), tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.number", 7)
    writer.add_array("a.list", ["eins", "zwei", "三"])
    writer.add_array("b.list", [1, 2, 3])
    writer.add_bool("a.truth", True)
    kinds, arrays = gguf.GGMLQuantizationType, {}
    for kind in (kinds.F32, kinds.F16, kinds.Q4_1, kinds.Q8_0):
        array = rng.standard_normal((3, 64), np.float32)
        data = gguf.quantize(array, kind)
        writer.add_tensor(kind.name, data, raw_dtype=kind)
        arrays[kind.name] = gguf.dequantize(data, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, arrays


def test_each_kind_of_number_is_read_as_it_was_written(small):
    path, arrays = small
    file = Gguf(path)
    assert file.values["a.number"] == 7
    assert file.values["a.truth"] is True
    assert file.values["a.list"] == ["eins", "zwei", "三"]
    assert file.values["b.list"] == [1, 2, 3]
    for name, array in arrays.items():
        assert np.array_equal(file.array(name), array.astype(np.float32)), name
    with pytest.raises(KeyError):
        file.array("none")


def test_a_file_cut_off_anywhere_is_refused(small, tmp_path):
    whole = small[0].read_bytes()
    cut = tmp_path / "cut.gguf"
    # Of what follows the last array nothing is needed.
    needed = max(p.start + p.bytes for p in Gguf(small[0])._places.values())
    for length in (*range(0, 600, 7), *range(600, needed, 97), needed - 1):
        cut.write_bytes(whole[:length])
        with pytest.raises(BrokenFile, match=r"cut\.gguf"):
            Gguf(cut)


def test_a_file_with_any_byte_of_its_head_altered_is_read_or_refused(small, tmp_path):
    whole = small[0].read_bytes()
    altered = tmp_path / "altered.gguf"
    for place in range(0, 500):
        data = bytearray(whole)
        data[place] ^= 0xFF
        altered.write_bytes(data)
        try:
            file = Gguf(altered)
            for name in file.shapes:
                file.array(name)
        except BrokenFile:
            continue


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (0, b"JUNK", "does not begin with GGUF"),
        (4, struct.pack("<I", 1), "version 1"),
        (8, struct.pack("<Q", 2**62), "cut off"),
        (16, struct.pack("<Q", 2**62), "cut off|unknown type|twice|UTF-8"),
        (24, struct.pack("<Q", 2**63), "cut off"),
    ],
)
def test_the_message_says_what_is_wrong_with_a_head(small, place, value, says):
    data = bytearray(small[0].read_bytes())
    data[place : place + len(value)] = value
    small[0].write_bytes(data)
    with pytest.raises(BrokenFile, match=says):
        Gguf(small[0])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        # name, two axes, 64 and 3; kind; place
        (struct.pack("<IQQI", 2, 64, 3, 3), struct.pack("<IQQI", 2, 64, 3, 99), "type"),
        (struct.pack("<IQQI", 2, 64, 3, 3), struct.pack("<IQQI", 9, 64, 3, 3), "axes"),
        (struct.pack("<IQQI", 2, 64, 3, 3), struct.pack("<IQQI", 2, 65, 3, 3), "rows"),
        (
            struct.pack("<IQQI", 2, 64, 3, 3),
            struct.pack("<IQQI", 2, 64, 2**40, 3),
            "should end",
        ),
    ],
)
def test_the_message_says_what_is_wrong_with_an_array(small, old, new, says):
    data = small[0].read_bytes()
    assert data.count(old) == 1
    small[0].write_bytes(data.replace(old, new))
    with pytest.raises(BrokenFile, match=says):
        Gguf(small[0])


# --- safetensors ---------------------------------------------------------------


def safetensors(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_safetensors_are_read():
    numbers = np.arange(6, dtype=np.float32)
    data = safetensors(
        {"__metadata__": {"format": "pt"}, "x": entry()}, numbers.tobytes()
    )
    (array,) = read_safetensors(data).values()
    assert np.array_equal(array, numbers.reshape(2, 3))
    assert not array.flags.writeable


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"short", "too short"),
        (struct.pack("<Q", 2**60) + b"{}", "cut off"),
        (safetensors(b"{nonsense"), "not JSON"),
        (safetensors(b"[1]"), "not JSON"),
        (safetensors({"x": 5}, bytes(24)), "described wrongly"),
        (safetensors({"x": entry("BOOM")}, bytes(24)), "described wrongly"),
        (safetensors({"x": entry(offsets=(0, 48))}, bytes(24)), "outside"),
        (safetensors({"x": entry(offsets=(-24, 0))}, bytes(24)), "outside"),
        (safetensors({"x": entry(offsets=(24, 0))}, bytes(24)), "outside"),
        (safetensors({"x": entry(shape=(-2, -3))}, bytes(24)), "outside"),
        (safetensors({"x": entry(shape=(2, 4))}, bytes(24)), "24 bytes for it"),
    ],
)
def test_broken_safetensors_are_refused(data, says):
    with pytest.raises(BrokenFile, match=says):
        read_safetensors(data)


# --- where the files are -------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.wheel)
def test_a_model_is_found_without_running_its_package(model):
    assert files.find(model).is_file()
    code = (
        "import sys; from attnbook.pretrained import files;"
        f"files.find(files.{'SMOLLM2' if model is MODELS[0] else 'MINILM'});"
        f"assert {model.path.split('/')[0]!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Wheel:
    def __init__(self, folder, version):
        self.folder, self.version = folder, version

    def locate_file(self, path):
        return self.folder / path


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.wheel)
@pytest.mark.parametrize("trouble", ["absent", "version", "lost", "altered", "off"])
def test_the_message_says_what_is_wrong_and_the_one_command(
    model, trouble, monkeypatch, tmp_path
):
    def distribution(name):
        assert name == model.wheel
        if trouble == "absent":
            raise metadata.PackageNotFoundError(name)
        return Wheel(tmp_path, "0.1.1" if trouble == "version" else model.version)

    monkeypatch.setattr(metadata, "distribution", distribution)
    if trouble == "altered":
        path = tmp_path / model.path
        path.parent.mkdir()
        path.write_bytes(b"GGUF" + bytes(1000))
    if trouble == "off":
        monkeypatch.setenv("ATTNBOOK_MODELS", "off")
    says = {
        "absent": "is not installed",
        "version": "has version 0.1.1",
        "lost": "lacks its file",
        "altered": "has been altered",
        "off": "switched off",
    }
    with pytest.raises(ModelUnavailable, match=says[trouble]) as error:
        files.find(model)
    assert str(error.value).count("pip install") == 1
    assert f"{model.wheel}=={model.version}" in str(error.value)


def test_what_is_installed_is_what_is_checked(request):
    lines = (
        (request.config.rootpath / "attnbook/pretrained/requirements.txt")
        .read_text("utf-8")
        .splitlines()
    )
    pinned = [line.split()[0] for line in lines if "==" in line]
    assert pinned == [f"{model.wheel}=={model.version}" for model in MODELS]
    assert sum("--hash=sha256:" in line for line in lines) == len(MODELS)
