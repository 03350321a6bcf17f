import pytest

from estimator.feature_gates import KNOWN, Gates, parse_feature_gates, resolve

OVERCOMMIT = Gates(scheduling_overcommit_protection=True)
QUOTA = Gates(resource_quota_estimate=True)
BOTH = Gates(scheduling_overcommit_protection=True, resource_quota_estimate=True)


@pytest.mark.parametrize(
    ("texts", "gates"),
    [
        ([], Gates()),
        ([""], Gates()),
        (["SchedulingOvercommitProtection=true"], OVERCOMMIT),
        (["ResourceQuotaEstimate=T"], QUOTA),
        ([" ResourceQuotaEstimate = 1 ,, Failover=false"], QUOTA),
        (["ResourceQuotaEstimate=true", "SchedulingOvercommitProtection=true"], BOTH),
        (["ResourceQuotaEstimate=true", "ResourceQuotaEstimate=false"], Gates()),
        (["AllAlpha=true"], BOTH),
        (["AllBeta=true"], Gates()),
        (["AllAlpha=true,ResourceQuotaEstimate=false"], OVERCOMMIT),
        (["ResourceQuotaEstimate=false", "AllAlpha=true"], OVERCOMMIT),
        (["AllAlpha=false,ResourceQuotaEstimate=true"], QUOTA),
    ],
)
def test_gates_resolve_as_upstream(texts: list[str], gates: Gates) -> None:
    assert resolve(parse_feature_gates(text) for text in texts) == gates


@pytest.mark.parametrize("name", KNOWN)
def test_every_gate_of_karmada_is_accepted(name: str) -> None:
    assert parse_feature_gates(f"{name}=true") == {name: True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Overcommit=true", "unknown feature gate 'Overcommit': expected one of AllAlpha, AllBeta, "),
        ("failover=true", "unknown feature gate 'failover'"),
        ("Failover", "feature gate Failover has no value: expected Failover=true or Failover=false"),
        ("Failover=", "feature gate Failover=: expected true or false"),
        ("Failover=on", "feature gate Failover=on: expected true or false"),
    ],
)
def test_a_wrong_gate_is_named_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="feature gate") as caught:
        parse_feature_gates(text)
    assert message in str(caught.value)
