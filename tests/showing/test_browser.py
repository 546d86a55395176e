"""The pages of a gateway and of an audit in a real Chromium: colours, views, widths, and nobody else is asked."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gateway.servers import Script, gateway_to, post
from toolgram.audit import audit
from toolgram.audit.page import page

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1,}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
LONG = "x" * 300


def test_pages_in_chromium(root: Path, tmp_path: Path) -> None:
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not (root / "playground" / "node_modules").is_dir() or not shutil.which("node") or not shutil.which(chromium):
        pytest.skip("needs node and Chromium: make test-site")
    log, lost = tmp_path / "log.jsonl", tmp_path / "lost.html"
    answer = {"role": "assistant", "content": f"Look. {LONG}{CALL}"}
    log.write_text(json.dumps({"model": "m", "choices": [{"message": answer}]}) + "\n", encoding="utf-8")
    lost.write_text(page(audit([str(log)], "hermes")), encoding="utf-8")
    with gateway_to(Script([f"<b>Look.{LONG}", CALL])) as (address, _):
        for text in ("one", "two"):
            post(
                f"{address}/v1/chat/completions", json={"messages": [{"role": "user", "content": text}], "tools": TOOLS}
            )
        pictures = os.environ.get("PICTURES", str(tmp_path / "pictures"))
        run = ["node", "playground/answers.mjs", pictures, f"serve={address}/", f"audit={lost.as_uri()}"]
        done = subprocess.run(run, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 8
