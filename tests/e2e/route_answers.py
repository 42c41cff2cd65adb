# SPDX-License-Identifier: Apache-2.0
"""A server's answers to every request in its OpenAPI document, in a form that allows two servers to be compared: values
that depend on the time of delivery or on the storage format are left out."""
import json
import urllib.parse

# Depend on the delivery or on the store.
VOLATILE = {"received_ns", "created_ns", "first_seen_ns", "last_seen_ns", "bytes", "revision", "next_cursor", "age_ns",
            "changed_ns", "key_id", "audit_id", "now_ns"}
# Routes that are not about sessions: streams, documents, the server itself.
SKIPPED = ("/api/v1/live", "/api/v1/openapi.json", "/healthz", "/readyz", "/metrics", "/api/v1/info/version",
           "/api/v1/server", "/api/v1/keys", "/api/v1/configs/{name}")


def _stable(value):
    if isinstance(value, dict):
        return {name: _stable(member) for name, member in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [_stable(member) for member in value]
    return value


def _answer(server, path, **query):
    if query:
        path += "?" + urllib.parse.urlencode(query)
    answer = server.ask(path)
    if "json" in answer.headers.get("Content-Type", ""):
        return answer.status, _stable(json.loads(answer.body))
    return answer.status, answer.body


class Questions:
    """Every GET route, with arguments from this server's sessions."""

    def __init__(self, server, session_ids):
        self.server = server
        self.session_ids = session_ids
        document = server.get("/api/v1/openapi.json")
        self.routes = sorted(path for path, methods in document["paths"].items() if "get" in methods and path not in SKIPPED)

    def _session(self, session_id):
        base = f"/api/v1/sessions/{session_id}"
        kernels = [kernel["kernel_id"] for kernel in self.server.pages(base + "/kernels", "kernels")]
        functions = self.server.ask(base + "/code")
        functions = json.loads(functions.body).get("functions", []) if functions.status == 200 else []
        catalog = self.server.get(base)["catalog"]
        return base, kernels[:5], [function["function"] for function in functions[:3] if "function" in function], catalog

    def _session_paths(self, route, session_id, known):
        _, kernels, functions, _ = known
        route = route.replace("{id}", session_id)
        if "{kernel}" in route:
            return [route.replace("{kernel}", str(kernel)) for kernel in kernels]
        if "{function}" in route:
            return [route.replace("{function}", urllib.parse.quote(str(function), safe="")) for function in functions]
        return [route]

    @staticmethod
    def _windows(route, catalog):
        """Time ranges of a route: the whole session, its middle tenth, and for the timeline all levels of detail."""
        start, end = catalog["start_ns"], catalog["end_ns"]
        yield {}
        if start is None or end is None or end <= start:
            return
        middle, tenth = start + (end - start) // 2, max((end - start) // 10, 1)
        if route.endswith("/timeline"):
            yield {"from_ns": start, "to_ns": end + 1, "pixels": 4096}
            yield {"from_ns": middle, "to_ns": middle + max(tenth // 100, 1), "pixels": 4096}
        if route.endswith(("/timeline", "/kernels", "/metrics", "/pm", "/instances", "/timeline/range")):
            yield {"from_ns": middle, "to_ns": middle + tenth}

    def ask_all(self):
        """(path, query) of every request."""
        for route in self.routes:
            if "{id}" in route:
                continue
            if "{host}" in route:
                for host in self.server.get("/api/v1/hosts")["hosts"]:
                    path = route.replace("{host}", urllib.parse.quote(host["host"], safe=""))
                    yield path, {"from_ns": 1, "to_ns": 2 ** 62}
                    for gpu in host.get("gpus", []):
                        yield path, {"gpu": gpu["uuid"], "from_ns": 1, "to_ns": 2 ** 62}
            elif route == "/api/v1/compare":
                for other in self.session_ids[1:]:
                    yield route, {"base": self.session_ids[0], "new": other}
            elif route == "/api/v1/search/kernels":
                yield route, {"q": "e"}
                yield route, {"q": "GEMM"}
            elif route == "/api/v1/sessions":
                for sort in ("start", "kernels", "kernel_time", "lost"):
                    for order in ("asc", "desc"):
                        yield route, {"sort": sort, "order": order}
                yield route, {"q": self.session_ids[0][:8].upper()}
            else:
                yield route, {}
        for session_id in self.session_ids:
            known = self._session(session_id)
            for route in self.routes:
                if "{id}" not in route:
                    continue
                for path in self._session_paths(route, session_id, known):
                    for query in self._windows(route, known[3]):
                        yield path, query


def assert_same_answers(test, expected, other, session_ids):
    """Checks that both servers give the same answers; returns the number of requests."""
    count = 0
    for path, query in Questions(expected, session_ids).ask_all():
        test.assertEqual(_answer(other, path, **query), _answer(expected, path, **query), (path, query))
        count += 1
    return count
