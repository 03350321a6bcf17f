"""What docs/webhook.md names exists: flags, metrics, outcomes, files."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from fairway.service.certificates import CertificateReading
from fairway.service.lifecycle import StallReading
from webhook.flags import GROUPS
from webhook.metrics import WebhookMetrics
from webhook.registration import Look
from webhook.suspend import Outcome

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "webhook.md").read_text("utf-8")


def test_every_flag_exists() -> None:
    known = {flag.name for group in GROUPS for flag in group.flags}
    of_others = {"type", "kubeconfig", "hold"}
    named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", TEXT))
    assert named <= known | of_others


def test_every_metric_exists_and_is_named() -> None:
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry, version="1")
    metrics.watch_certificates(lambda: CertificateReading(0.0, None, 0, 0))
    metrics.watch_stalls(lambda: StallReading(0, 0.0))
    families = {family.name for family in registry.collect()} - {"fairway_webhook_build_info"}
    named = {name.removesuffix("_total") for name in re.findall(r"`(fairway_webhook_[a-z_]+)", TEXT)}
    certificates = {name for name in families if name.startswith("fairway_webhook_certificate_")}
    assert named <= families
    assert families - certificates <= named


def test_every_outcome_and_file_exists() -> None:
    assert {"held-creation", "held-growth", "not-understood"} <= set(Outcome)
    assert all(f"`{look}`" in TEXT for look in Look)
    for file in re.findall(r"\]\(\.\./([^)]+)\)", TEXT):
        assert (ROOT / file).is_file()
