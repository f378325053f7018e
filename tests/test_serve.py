"""The server that shows the built site on this machine."""

import http.client
import socket
import threading

import pytest
import serve


@pytest.fixture
def folder(tmp_path):
    for name in ("index.html", "404.html", "a.mjs", "b.wasm", "c.js", "d.woff2"):
        (tmp_path / name).write_text(name)
    return tmp_path


def _get(port: int, path: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        kind = response.headers["Content-Type"]
        return response.status, kind, response.read().decode()
    finally:
        connection.close()


@pytest.fixture
def port(folder):
    with serve.open_server(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mjs", "text/javascript"),
        ("b.wasm", "application/wasm"),
        ("c.js", "text/javascript"),
        ("d.woff2", "font/woff2"),
    ],
)
def test_files_have_the_types_that_browsers_insist_on(port, name, kind):
    assert _get(port, f"/{name}") == (200, kind, name)


def test_a_missing_file_gets_the_books_404_page(port):
    status, kind, body = _get(port, "/deep/in/nothing.html")
    assert (status, body) == (404, "404.html")
    assert kind.startswith("text/html")


def test_nothing_outside_the_site_is_served(port):
    assert _get(port, "/../../../../etc/passwd")[0] == 404


def test_a_taken_port_is_passed_over_unless_it_was_asked_for(folder):
    with serve.open_server(folder) as first, serve.open_server(folder) as second:
        assert first.server_port != second.server_port
        assert first.server_address[0] == "127.0.0.1"
        with pytest.raises(OSError, match="in use"):
            serve.open_server(folder, first.server_port)


@pytest.mark.parametrize(
    ("port", "words"), [("eighty", "PORT is 'eighty'"), ("99999", "up to 65535")]
)
def test_a_port_that_is_none_is_refused_in_one_line(monkeypatch, folder, port, words):
    monkeypatch.setattr(serve, "SITE", folder)
    monkeypatch.setenv("PORT", port)
    with pytest.raises(SystemExit, match=words):
        serve.main()


def test_a_taken_port_is_reported_in_one_line(monkeypatch, folder):
    monkeypatch.setattr(serve, "SITE", folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(port))
        with pytest.raises(SystemExit, match=f"Port {port}"):
            serve.main()


def test_without_a_site_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(serve, "SITE", tmp_path)
    with pytest.raises(SystemExit, match="run make book first"):
        serve.main()
