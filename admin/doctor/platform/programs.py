"""Whether Fairway's programs run on the host cluster, of one release, with the Secrets that they need."""

from collections.abc import Iterable, Sequence
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict, does_not_apply
from admin.doctor.kinds import DEPLOYMENTS, PODS, SECRETS
from admin.doctor.program import (
    DISPATCHER,
    ESTIMATORS,
    KARMADA,
    OUR_WEBHOOK,
    OURS,
    Program,
    asks_estimators,
    programs,
)
from admin.doctor.registration import registered
from admin.doctor.running import ContainerStatus, Deployment, Pod
from admin.doctor.version import parse_version
from fairway.kube.objects import object_key
from fairway.service.version import release

_MANY_RESTARTS: Final = 5
_WAITS_FOR_GOOD: Final = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)


def _ready(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    host.listed(DEPLOYMENTS)
    found = programs(host, (*OURS, *ESTIMATORS))
    yield from _missing(evidence, found)
    for program in found:
        if program.owner is not None:
            yield from _of_deployment(program, program.owner)


def _missing(evidence: Evidence, found: Sequence[Program]) -> Iterable[Finding]:
    there = {program.name for program in found}
    if DISPATCHER not in there:
        yield Finding(
            Verdict.ERROR,
            DISPATCHER,
            "no Deployment runs it: what is held is never released",
            "install it: see docs/dispatcher.md",
        )
    if OUR_WEBHOOK not in there:
        try:
            holds_otherwise = bool(registered(evidence).in_force)
        except NotRead:
            holds_otherwise = False
        if not holds_otherwise:
            yield Finding(
                Verdict.ERROR,
                OUR_WEBHOOK,
                "no Deployment runs it, and no admission policies take its place: nothing is held",
                "install it, or the policies: see docs/webhook.md",
            )


def _of_deployment(program: Program, deployment: Deployment) -> Iterable[Finding]:
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    ready, updated = deployment.status.ready_replicas, deployment.status.updated_replicas
    see = f"see why: kubectl describe deployment {deployment.metadata.name} -n {program.namespace}"
    if wanted == 0:
        yield Finding(
            Verdict.ERROR,
            program.subject,
            "spec.replicas: 0: it is switched off",
            f"kubectl scale deployment {deployment.metadata.name} -n {program.namespace} --replicas=2",
        )
    elif ready == 0:
        yield Finding(Verdict.ERROR, program.subject, f"none of {wanted} replicas is ready", see)
    elif ready < wanted:
        yield Finding(Verdict.WARNING, program.subject, f"{ready} of {wanted} replicas are ready", see)
    elif updated < wanted:
        yield Finding(
            Verdict.WARNING,
            program.subject,
            f"{updated} of {wanted} replicas are of the newest template: a rollout is under way, or stuck",
            see,
        )


def _versions(evidence: Evidence) -> Iterable[Finding]:
    found = [program for program in programs(evidence.on_host(), (*OURS, *ESTIMATORS)) if program.is_ours]
    tags = sorted({program.tag for program in found})
    for program in found:
        if program.version is None:
            yield Finding(
                Verdict.UNKNOWN,
                program.subject,
                f"the image {program.container.image} tells no release",
                f"use an image whose tag is a release, such as :{release()}",
            )
    if len(tags) > 1:
        told = ", ".join(f"{program.name} {program.tag or '?'}" for program in found)
        yield Finding(
            Verdict.WARNING,
            "Fairway",
            f"its programs are of different releases: {told}",
            "bring all to one release, the estimators first and the webhook last",
        )
    elif tags and parse_version(tags[0]) is not None and parse_version(tags[0]) != parse_version(release()):
        yield Finding(
            Verdict.NOTE,
            "Fairway",
            f"release {tags[0]} runs, and this command is {release()}: what it expects of others may differ",
            "use the command of the release that runs",
        )


def _crashes(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    names = {program.container.name for program in programs(host, (*OURS, *ESTIMATORS, *KARMADA))}
    for pod in host.listed(PODS):
        statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
        if not any(each.name in names for each in pod.spec.containers or ()):
            continue
        for status in statuses:
            yield from _container(pod, status)


def _container(pod: Pod, status: ContainerStatus) -> Iterable[Finding]:
    waiting = status.state.waiting
    log = f"kubectl logs {pod.metadata.name} -n {pod.metadata.namespace} -c {status.name} --previous"
    subject = f"Pod {object_key(pod.metadata)}"
    if waiting is not None and waiting.reason in _WAITS_FOR_GOOD:
        yield Finding(
            Verdict.ERROR,
            subject,
            f"container {status.name}: {waiting.reason}: {waiting.message or 'no message'}",
            f"see {log}" if waiting.reason == "CrashLoopBackOff" else "mend what it says",
        )
    elif status.restart_count >= _MANY_RESTARTS:
        ended = status.last_state.terminated
        why = f", the last time by {ended.reason} ({ended.exit_code})" if ended else ""
        yield Finding(
            Verdict.WARNING,
            subject,
            f"container {status.name} was restarted {status.restart_count} times{why}",
            f"see {log}",
        )


def _secrets(evidence: Evidence) -> Iterable[Finding]:
    host = evidence.on_host()
    there = {(each.metadata.namespace, each.metadata.name): each for each in host.listed(SECRETS)}
    for program in programs(host, (*OURS, *ESTIMATORS)):
        for volume in program.pod.volumes or ():
            if volume.secret is None or volume.secret.optional:
                continue
            name = volume.secret.secret_name
            secret = there.get((program.namespace, name))
            if secret is None:
                yield Finding(
                    Verdict.ERROR,
                    program.subject,
                    f"volume {volume.name}: no Secret {program.namespace}/{name}: no pod of it starts",
                    "make the Secret: see docs/install.md",
                )
                continue
            for item in volume.secret.items or ():
                if item.key not in (secret.data or {}):
                    yield Finding(
                        Verdict.ERROR,
                        f"Secret {program.namespace}/{name}",
                        f"has no key {item.key}, which {program.subject} mounts: no pod of it starts",
                        f"add the key: it has {', '.join(sorted(secret.data or {})) or 'none'}",
                    )


def _dispatcher(evidence: Evidence) -> Iterable[Finding]:
    found = programs(evidence.on_host(), (DISPATCHER,))
    if not found:
        yield does_not_apply(f"nothing runs {DISPATCHER}")
    for program in found:
        if not asks_estimators(program):
            yield Finding(
                Verdict.WARNING,
                program.subject,
                "asks no estimator: workloads are released by quota and by the clusters' totals alone, "
                "whether or not they fit at that moment",
                "run it with --enable-scheduler-estimator, and the scheduler's TLS flags",
                program.with_flag("enable-scheduler-estimator", "true"),
            )
        replicas = 1 if program.owner is None else program.owner.spec.replicas or 1
        if replicas > 1 and not program.arguments.switch("leader-elect", default=True):
            yield Finding(
                Verdict.ERROR,
                program.subject,
                f"--leader-elect=false with {replicas} replicas: each releases what the others have released",
                "leave the flag out",
                program.with_flag("leader-elect", "true"),
            )


CHECKS: Final = (
    Check(
        "dispatcher-flags",
        "Does the dispatcher ask estimators before it releases, and does only one of its replicas release?",
        "the dispatcher asks estimators before it releases",
        _dispatcher,
    ),
    Check(
        "programs-ready",
        "Do Fairway's programs and the estimators run, with all their replicas?",
        "Fairway's programs and the estimators run with all their replicas",
        _ready,
    ),
    Check(
        "program-versions",
        "Are Fairway's programs of one release, and of this command's?",
        "Fairway's programs are of this command's release",
        _versions,
    ),
    Check(
        "crash-loops",
        "Does a container of Karmada's or Fairway's programs fail again and again?",
        "no container of Karmada's or Fairway's programs fails again and again",
        _crashes,
    ),
    Check(
        "mounted-secrets",
        "Are the Secrets there that Fairway's programs and the estimators mount?",
        "every Secret that is mounted is there",
        _secrets,
    ),
)
