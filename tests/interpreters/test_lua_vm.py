"""The machine of these tests refuses what Karmada's refuses."""

import pytest

from tests.interpreters.kube_library import accurate_pod_requirements
from tests.interpreters.lua_vm import LuaVm, Object, ScriptError


@pytest.fixture
def machine() -> LuaVm:
    return LuaVm({})


@pytest.mark.parametrize(
    "body",
    [
        "return io.open('/etc/passwd')",
        "return os.getenv('HOME')",
        "return os.execute('true')",
        "return loadstring('return 1')()",
        "return load(function() end)",
        "return dofile('x')",
        "return setmetatable({}, {})",
        "return getmetatable('')",
        "return rawget({}, 1)",
        "return string.rep('a', 9)",
        "return string.gsub('a', 'a', 'b')",
        "return string.dump(print)",
        "return debug.getinfo(1)",
        "return coroutine.create(print)",
        "return python.eval('1')",
        "return require('os').exit",
        "return require('socket')",
        "while true do end",
    ],
)
def test_nothing_gets_out(machine: LuaVm, body: str) -> None:
    with pytest.raises(ScriptError):
        machine.run(f"function F() {body} end", "F")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return math.floor(2.5) + tonumber('3')", 5),
        ("return table.concat({'a', 'b'}, ',')", "a,b"),
        ("return string.sub('abc', 1, 2) .. string.lower('X') .. ('abc'):len()", "abx3"),
        ("local ok = pcall(error, 'x') return ok", False),
        ("return type(os.time())", "number"),
        ("return require('kube').resourceAdd('500m', '1', nil)", "1500m"),
        ("return require('kube').resourceAdd('1Gi', '512Mi')", "1536Mi"),
        ("return require('kube').getResourceQuantity('2Ki')", 2048),
        ("return (pcall(require('kube').resourceAdd, 'banana'))", False),
        ("return (pcall(require('kube').resourceAdd, 5))", False),
        ("return (pcall(require('kube').getResourceQuantity, '-1'))", False),
        ("return (pcall(require('kube').accuratePodRequirements, nil))", False),
        ("return (pcall(require('kube').accuratePodRequirements, {spec = {containers = 'x'}}))", False),
        ("return (pcall(require('kube').getPodDependencies, {}))", False),
    ],
)
def test_what_karmada_has_is_there(machine: LuaVm, body: str, expected: object) -> None:
    assert machine.run(f"function F() {body} end", "F") == expected


@pytest.mark.parametrize(
    ("script", "refusal"),
    [
        ("local t = {a = 1} return {t, t}", "recursively nested"),
        ("return {[1] = {name = 'a', replicas = 1}, [3] = {name = 'b', replicas = 1}}", "sparse array"),
        ("return {{name = 'a', replicas = 3000000000}}", "no int32"),
        ("return {{name = 'a', replicas = 1.5}}", "Expected `int`"),
        ("return {{replicas = 1}}", "name"),
        ("return 'a'", "Expected `array`"),
    ],
)
def test_what_karmada_cannot_convert_is_refused(script: str, refusal: str) -> None:
    machine = LuaVm({"componentResource": {"luaScript": f"function GetComponents(object) {script} end"}})
    with pytest.raises(ScriptError, match=refusal):
        machine.components({})


def test_a_revised_object_keeps_what_is_empty_in_it() -> None:
    machine = LuaVm(
        {"replicaRevision": {"luaScript": "function ReviseReplica(o, n) o.spec.n = n return o end"}}
    )
    obj: Object = {"spec": {"volumes": [{"name": "a", "emptyDir": {}}], "args": [], "limits": {}}}
    assert machine.revised(obj, 3) == {
        "spec": {"volumes": [{"name": "a", "emptyDir": {}}], "args": [], "limits": {}, "n": 3}
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"containers": [{"name": "a"}]}, None),
        (
            {
                "containers": [
                    {
                        "name": "a",
                        "resources": {
                            "limits": {"cpu": "1", "nvidia.com/gpu": 2},
                            "requests": {"cpu": "250m"},
                        },
                    },
                    {"name": "b", "resources": {"requests": {"cpu": 2, "memory": "1.5Gi", "storage": "1Gi"}}},
                ],
                "initContainers": [{"name": "i", "resources": {"requests": {"memory": "4Gi", "cpu": "1"}}}],
                "overhead": {"memory": "128Mi"},
            },
            {"resourceRequest": {"cpu": "2250m", "memory": "4224Mi", "nvidia.com/gpu": "2"}},
        ),
        (
            {
                "containers": [
                    {"name": "a", "resources": {"requests": {"cpu": "2000", "example.com/x": "1000"}}}
                ]
            },
            {"resourceRequest": {"cpu": "2k", "example.com/x": "1k"}},
        ),
        (
            {
                "nodeSelector": {"a": "b"},
                "priorityClassName": "high",
                "tolerations": [{"operator": "Exists"}],
            },
            {
                "nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
                "priorityClassName": "high",
            },
        ),
    ],
)
def test_a_pod_asks_for_what_karmada_counts(spec: Object, expected: Object | None) -> None:
    # A dict stands for a Lua table: both have items.
    assert accurate_pod_requirements({"spec": _table(spec)}) == expected


def _table(value: object) -> object:
    if isinstance(value, dict):
        return {key: _table(each) for key, each in value.items()}
    if isinstance(value, list):
        return {index + 1: _table(each) for index, each in enumerate(value)}
    return value
