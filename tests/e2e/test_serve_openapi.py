# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document of gpufl serve: complete, without unused parts, and consistent with the server's answers."""
import http.client
import json
import re
import shutil
import urllib.parse

from harness import SOURCE, gpufl, main
from serve_process import COMPLETE, STREAM, Serve, ServeTest, job_start, kernels, window

RECORDED = ("examples/recorded/h200-training", "tests/golden/trace", "tests/golden/two_gpus", "tests/golden/deep",
            "tests/golden/pc_sampling", "tests/golden/sass_metrics", "tests/golden/range_metrics", "tests/golden/monitor",
            "tests/golden/killed", "tests/golden/sync_loop")
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list,
         "null": type(None)}


class Document:
    def __init__(self, root):
        self.root = root
        self.schemas = root["components"]["schemas"]

    def operations(self, *methods):
        for path, item in self.root["paths"].items():
            for method, operation in item.items():
                if method in methods or not methods:
                    yield method, path, operation

    def schema_of(self, operation):
        """(type, schema) of the success answer; (None, None): no content."""
        answer = next(operation["responses"][status] for status in operation["responses"] if status != "default")
        for kind, content in answer.get("content", {}).items():
            return kind, content["schema"]
        return None, None

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def differences(self, value, schema, place="answer"):
        """Differences between a value and its schema, by the JSON Schema rules that the document uses; every member of
        the answer must also have a description."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            tries = [list(self.differences(value, choice, place)) for choice in schema["anyOf"]]
            yield from [] if [] in tries else tries[0]
            return
        kinds = schema.get("type", list(TYPES))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if not any(isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))
                   for kind in kinds):
            yield f"{place}: {json.dumps(value)[:60]} is not a {' or '.join(kinds)}"
            return
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            yield from (f"{place}: no {name}" for name in schema.get("required", ()) if name not in value)
            for name, member in value.items():
                if name in properties:
                    yield from self.differences(member, properties[name], f"{place}.{name}")
                elif isinstance(schema.get("additionalProperties"), dict):
                    yield from self.differences(member, schema["additionalProperties"], f"{place}.{name}")
                elif place == "answer" and "additionalProperties" not in schema:
                    yield f"{place}.{name} is not in the document"
        if isinstance(value, list) and "items" in schema:
            for index, element in enumerate(value[:200]):
                yield from self.differences(element, schema["items"], f"{place}[{index}]")


class OpenApi(ServeTest):

    def fill(self, server):
        """Stores recorded sessions and one of every other object; `known` has parameters for each path."""
        for name in RECORDED:
            copy = self.directory / "recorded" / name.rsplit("/", 1)[1]
            shutil.copytree(SOURCE / name, copy, ignore=shutil.ignore_patterns(".gpufl-uploaded.json"))
            result = gpufl("upload", copy, "--server", server.url)
            self.assertIn(result.returncode, (0, 1), result.stderr)
        answer = server.ask("/api/v1/configs/fast", "PUT", '{"engine":"Trace"}', {"Content-Type": "application/json"})
        self.assertEqual(answer.status, 200, answer.body)

    def questions(self, server, path):
        """Requests that fill the path's parameters with what the server has."""
        entries = server.pages("/api/v1/sessions", "sessions")
        sessions = [entry["id"] for entry in entries]
        if "{id}" not in path:
            values = {"/api/v1/hosts/{host}/metrics": {"host": server.get("/api/v1/hosts")["hosts"][0]["host"]},
                      "/api/v1/configs/{name}": {"name": "fast"}}.get(path, {})
            queries = {"/api/v1/compare": [{"base": sessions[0], "new": other} for other in sessions],
                       "/api/v1/search/kernels": [{"q": "a"}],
                       "/api/v1/hosts/{host}/metrics": [{"from_ns": 1, "to_ns": 60_000_000_000 * 50_000}, {}]}
            for query in queries.get(path, [{}]):
                yield path, values, query
            return
        for entry in entries:
            session = entry["id"]
            base, stretch = f"/api/v1/sessions/{session}", {"from_ns": entry["start_ns"], "to_ns": entry["end_ns"]}
            if "{kernel}" in path:
                for kernel in server.get(base + "/kernels", limit=3)["kernels"]:
                    yield path, {"id": session, "kernel": kernel["kernel_id"]}, {}
            elif "{function}" in path:
                for function in server.get(base + "/code", limit=3)["functions"]:
                    yield path, {"id": session, "function": function["function_id"]}, {}
            elif path.endswith("/timeline/event"):
                yield from ((path, {"id": session}, query) for query in self.events(server, base))
            elif path.endswith("/timeline/marks"):
                for kernel in server.get(base + "/kernels", limit=2)["kernels"]:
                    yield path, {"id": session}, {"kernel": kernel["kernel_id"], **stretch}
            elif path.endswith("/timeline/range"):
                yield path, {"id": session}, stretch
            elif path.endswith("/source"):
                files = {line["file"] for line in server.get(base + "/code")["lines"] if line.get("file")}
                yield from ((path, {"id": session}, {"file": file}) for file in sorted(files)[:3])
            else:
                yield path, {"id": session}, {}

    def events(self, server, base):
        """One event of each track that has events, by its position in the tile's columns."""
        tile = server.ask(base + "/timeline?pixels=16")
        if tile.status != 200:
            return
        size = int.from_bytes(tile.body[8:12], "little")
        text, columns = json.loads(tile.body[16:16 + size]), tile.body[16 + size:]
        for track in text["tracks"]:
            start = next((column for column in track["columns"] if column["name"] == "start_ns"), None)
            if track["is_exact"] and track["rows"] and start:
                at = start["offset"]
                yield {"track": track["id"], "start_ns": int.from_bytes(columns[at:at + 8], "little", signed=True)}

    def test_every_get_answers_as_the_document_says(self):
        with Serve(self.data) as server:
            self.fill(server)
            document = Document(server.get("/api/v1/openapi.json"))
            unanswered, differences, asked = [], [], 0
            for _, path, operation in document.operations("get"):
                if path == "/api/v1/live":
                    continue  # it does not end; tested below
                kind, schema = document.schema_of(operation)
                good = 0
                for pattern, values, query in self.questions(server, path):
                    target = re.sub(r"\{(\w+)\}", lambda found: urllib.parse.quote(str(values[found[1]]), safe=""), pattern)
                    answer = server.ask(target + ("?" + urllib.parse.urlencode(query) if query else ""))
                    asked += 1
                    if answer.status != 200:
                        content = json.loads(answer.body)
                        differences += [f"{target}: {text}" for text in
                                        document.differences(content, {"$ref": "#/components/schemas/Error"})]
                        self.assertIn(answer.status, (400, 404), (target, query, answer.body))
                        continue
                    good += 1
                    self.assertEqual(answer.headers["Content-Type"].split(";")[0], kind, target)
                    if kind == "application/json":
                        differences += [f"{path} ({target}): {text}"
                                        for text in document.differences(json.loads(answer.body), schema)]
                if not good:
                    unanswered.append(path)
            self.assertEqual(unanswered, [])
            self.assertEqual(differences[:40], [], f"{len(differences)} differences in {asked} answers")

    def test_other_answers_are_as_the_document_says(self):
        with Serve(self.data) as server:
            document = Document(server.get("/api/v1/openapi.json"))
            body, headers = window([job_start("s"), kernels("s")], "s")
            bad, bad_headers = window([kernels("s"), {"no": "type"}], "s", sequence=2)
            json_type = {"Content-Type": "application/json"}
            legacy = json.dumps({"data": json.dumps(kernels("s", 7)), "hostname": "node1"})
            asked = (("post", STREAM, STREAM, body, headers), ("post", STREAM, STREAM, bad, bad_headers),
                     ("post", COMPLETE, COMPLETE, b"", {"X-GpuFlight-Session-Id": "s"}),
                     ("post", "/api/v1/events/{type}", "/api/v1/events/kernel_event_batch", legacy, json_type),
                     ("put", "/api/v1/configs/{name}", "/api/v1/configs/a", '{"engine":"Trace"}', json_type),
                     ("delete", "/api/v1/configs/{name}", "/api/v1/configs/a", None, {}),
                     ("patch", "/api/v1/sessions/{id}", "/api/v1/sessions/s", '{"tags":["a"],"retention_days":3}', json_type),
                     ("delete", "/api/v1/sessions/{id}", "/api/v1/sessions/s", None, {}))
            for method, path, target, content, more in asked:
                operation = document.root["paths"][path][method]
                answer = server.ask(target, method.upper(), content, more)
                self.assertIn(answer.status, (200, 202, 204), (target, answer.body))
                kind, schema = document.schema_of(operation)
                self.assertEqual(answer.status == 204, kind is None, target)
                if kind:
                    self.assertEqual(list(document.differences(json.loads(answer.body), schema)), [], target)
            self.assertEqual({(method, path) for method, path, _, _, _ in asked},
                             {(method, path) for method, path, _ in document.operations() if method != "get"})
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
            connection.request("GET", "/api/v1/live")
            response = connection.getresponse()
            kind, _ = document.schema_of(document.root["paths"]["/api/v1/live"]["get"])
            self.assertEqual((response.status, response.getheader("Content-Type").split(";")[0]), (200, kind))
            connection.close()

    def test_the_document_has_no_loose_ends(self):
        with Serve(self.data) as server:
            root = server.get("/api/v1/openapi.json")
            document = Document(root)
            text = json.dumps(root)
            used = set(re.findall(r'"#/components/schemas/(\w+)"', text))
            self.assertEqual(used - set(document.schemas), set())
            self.assertEqual(set(document.schemas) - used, set(), "described and never used")
            for name, schema in document.schemas.items():
                self.assertTrue(schema["description"], name)
                self.assertTrue(schema.get("properties") or schema.get("additionalProperties"), name)
                self.assertEqual(set(schema.get("required", ())) - set(schema.get("properties", ())), set(), name)
            names = [operation["operationId"] for _, _, operation in document.operations()]
            self.assertEqual(len(names), len(set(names)))
            for method, path, operation in document.operations():
                in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
                self.assertEqual(in_path, re.findall(r"\{(\w+)\}", path))
                self.assertEqual("security" in operation, operation["x-scope"] != "none", path)
                # Each path exists, whatever it answers to unknown values.
                target = re.sub(r"\{\w+\}", "x", path)
                if path != "/api/v1/live":
                    answer = server.ask(target, method.upper(), b"{}" if method in ("put", "patch") else None)
                    self.assertNotIn(answer.status, (405, 501), (method, path))
                    if answer.status == 404:
                        self.assertNotEqual(json.loads(answer.body)["error"]["code"], "not_found", (method, path))
            # Every route that was served is documented: the metrics list the routes that requests reached.
            page = server.ask("/metrics").body.decode()
            served = {(method.lower(), route.replace("...", "")) for method, route in
                      re.findall(r'gpufl_http_requests_total\{method="(\w+)",route="([^"]+)"', page)}
            described = {(method, path) for method, path, _ in document.operations()}
            self.assertEqual({(method, route) for method, route in served - described if route.startswith("/api/")}, set())


if __name__ == "__main__":
    main()
