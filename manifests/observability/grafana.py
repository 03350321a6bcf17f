"""Grafana's dashboards as JSON, of a small description: rows of panels, laid out from left to right."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Json = dict[str, object]

WIDTH: Final = 24
_SOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
_LAST: Final[Json] = {"reduceOptions": {"calcs": ["lastNotNull"]}}


@dataclass(frozen=True, slots=True)
class Panel:
    """What one panel shows. ``queries``: PromQL with the legend of its series.

    ``unit``: Grafana's name of it. ``red_from``: values from here on are red. ``most``: the end of the axis.
    """

    title: str
    queries: Sequence[tuple[str, str]]
    width: int = 8
    height: int = 8
    unit: str = "short"
    text: str = ""
    most: float | None = None
    red_from: float | None = None


class Stat(Panel):
    """One number."""


class Lines(Panel):
    """Series over time."""


class Stacked(Lines):
    """Series over time, one on the other."""


class Bars(Panel):
    """A bar for each series as it is now."""


@dataclass(frozen=True, slots=True)
class Column:
    """A query whose values are a column of a table. ``red_from``: as in `Panel`."""

    title: str
    query: str
    unit: str = "short"
    red_from: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A line for each combination of ``labels``, which all queries group by. ``by``: sorted by this column,
    the largest first.
    """

    title: str
    labels: Sequence[str]
    columns: Sequence[Column]
    width: int = 12
    height: int = 9
    text: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    panels: Sequence[Panel | Table]


@dataclass(frozen=True, slots=True)
class Variable:
    """What a reader chooses: values of a label of ``series``. ``has_all``: all at once, as it is at first;
    else the first one is.
    """

    name: str
    title: str
    series: str
    has_all: bool = True


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``uid``: its place in links; also the name of its file, without ``fairway-``."""

    uid: str
    title: str
    text: str
    variables: Sequence[Variable]
    rows: Sequence[Row]

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.uid.removeprefix('fairway-')}.json"

    @property
    def json(self) -> str:
        """What Grafana reads."""
        made: Json = {
            "uid": self.uid,
            "title": self.title,
            "description": self.text,
            "tags": ["fairway", "karmada"],
            "schemaVersion": 39,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "",
            "templating": {"list": [_DATASOURCE, *map(_variable, self.variables)]},
            "annotations": {"list": []},
            "links": [_LINKS],
            "panels": list(_laid_out(self.rows)),
        }
        return json.dumps(made, indent=1) + "\n"


_LINKS: Final[Json] = {
    "type": "dashboards",
    "title": "Fairway",
    "tags": ["fairway"],
    "asDropdown": True,
    "includeVars": True,
    "keepTime": True,
}
_DATASOURCE: Final[Json] = {
    "name": "datasource",
    "type": "datasource",
    "query": "prometheus",
    "label": "Data source",
    "hide": 0,
    "current": {},
    "options": [],
    "refresh": 1,
    "regex": "",
    "multi": False,
    "includeAll": False,
}


def _variable(variable: Variable) -> Json:
    query = f"label_values({variable.series}, {variable.name})"
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": variable.name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": variable.has_all,
        # Of series without the label as well.
        "allValue": ".*" if variable.has_all else None,
        "current": {"text": "All", "value": ["$__all"]} if variable.has_all else {},
        "hide": 0,
        "options": [],
        "regex": "",
    }


def _laid_out(rows: Iterable[Row]) -> Iterable[Json]:
    id_, y = 1, 0
    for row in rows:
        place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        yield {
            "id": id_,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        id_, y, x, deepest = id_ + 1, y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, deepest = 0, y + deepest, 0
            place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
            head: Json = {"id": id_, "title": panel.title, "description": panel.text, "datasource": _SOURCE}
            body = _table(panel) if isinstance(panel, Table) else _panel(panel)
            yield {**head, "gridPos": place, **body}
            id_, x, deepest = id_ + 1, x + panel.width, max(deepest, panel.height)
        y += deepest


def _panel(panel: Panel) -> Json:
    over_time = not isinstance(panel, Bars)
    custom: Json = {}
    if isinstance(panel, Lines):
        mode = "normal" if isinstance(panel, Stacked) else "none"
        custom = {"fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "stacking": {"mode": mode}}
    defaults: Json = {"unit": panel.unit, "min": 0, "custom": custom}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.red_from is not None:
        defaults["thresholds"] = _thresholds(panel.red_from)
    kind, options = _KINDS[Lines if isinstance(panel, Lines) else type(panel)]
    return {
        "type": kind,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            _target(number, query, legend, over_time=over_time)
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


_KINDS: Final[Mapping[type[Panel], tuple[str, Json]]] = {
    Stat: ("stat", {**_LAST, "colorMode": "value"}),
    Bars: ("bargauge", {**_LAST, "displayMode": "gradient", "orientation": "horizontal"}),
    Lines: (
        "timeseries",
        {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    ),
}


def _table(table: Table) -> Json:
    # Grafana names the values of a query after it, unless there is only one.
    several = len(table.columns) > 1
    names = [f"Value #{_ref(number)}" if several else "Value" for number in range(len(table.columns))]
    columns = [column.title for column in table.columns]
    order = {name: place for place, name in enumerate((*table.labels, *names))}
    overrides = []
    for column in table.columns:
        properties: list[Json] = [{"id": "unit", "value": column.unit}]
        if column.red_from is not None:
            properties.append({"id": "thresholds", "value": _thresholds(column.red_from)})
            properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
        overrides.append({"matcher": {"id": "byName", "options": column.title}, "properties": properties})
    sort = [{"displayName": table.by, "desc": True}] if table.by else []
    defaults: Json = {"unit": "short", "custom": {"filterable": True}}
    return {
        "type": "table",
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": {"showHeader": True, "sortBy": sort},
        "targets": [
            {**_target(number, column.query, "", over_time=False), "format": "table"}
            for number, column in enumerate(table.columns)
        ],
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": order,
                    "renameByName": dict(zip(names, columns, strict=True)),
                },
            },
        ],
    }


def _ref(number: int) -> str:
    return chr(ord("A") + number)


def _target(number: int, query: str, legend: str, *, over_time: bool) -> Json:
    return {
        "refId": _ref(number),
        "datasource": _SOURCE,
        "expr": query,
        "legendFormat": legend,
        "range": over_time,
        "instant": not over_time,
    }


def _thresholds(red_from: float) -> Json:
    steps = [{"color": "green", "value": None}, {"color": "red", "value": red_from}]
    return {"mode": "absolute", "steps": steps}
