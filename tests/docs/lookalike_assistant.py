# SPDX-License-Identifier: Apache-2.0
"""Replaces the programs that register or start an MCP server: starts the server on the command line, lists its tools,
and fails if it does not answer or has none.
usage: lookalike_assistant.py claude|codex mcp add NAME -- COMMAND...
       lookalike_assistant.py npx @modelcontextprotocol/inspector COMMAND..."""
import json
import subprocess
import sys

VERSION = "2025-06-18"


def server_command(words):
    if words[:1] == ["npx"] and words[1:2] == ["@modelcontextprotocol/inspector"]:
        return words[2:]
    if words[1:3] == ["mcp", "add"] and words[4:5] == ["--"]:
        return words[5:]
    sys.exit(f"{words[0]}: not a command line that starts a server: {' '.join(words)}")


def main():
    command = server_command(sys.argv[1:])
    asked = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": sys.argv[1], "version": "1"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    result = subprocess.run(command, input="".join(json.dumps(one) + "\n" for one in asked), capture_output=True,
                            text=True, timeout=60, check=True)
    agreed, tools = map(json.loads, result.stdout.splitlines())
    if agreed["result"]["protocolVersion"] != VERSION or not tools["result"]["tools"]:
        sys.exit(f"{sys.argv[1]}: the server has no tools: {result.stdout}")


if __name__ == "__main__":
    main()
