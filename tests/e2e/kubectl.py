"""kubectl, for what people do with it: apply files and kustomizations."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

from admin.install.manifest import INSTALLER, MANAGED_BY
from tests.e2e.api_server import ApiServer

_WITHIN_S = 120.0


class KubectlFailed(RuntimeError):
    """The message is what it wrote."""


async def kubectl(api: ApiServer, *words: str | Path, text: str = "") -> str:
    """What it prints; ``text`` is its input. Raises KubectlFailed."""
    command = [str(api.assets.kubectl), f"--kubeconfig={api.kubeconfig}", *(str(word) for word in words)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(_WITHIN_S):
            out, error = await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise KubectlFailed(f"{' '.join(command[2:])}: {error.decode()[-2_000:]}")
    return out.decode()


async def apply(api: ApiServer, text: str) -> None:
    """Apply documents of YAML, server-side."""
    await kubectl(api, "apply", "--server-side", "--force-conflicts", "-f", "-", text=text)


async def apply_files(api: ApiServer, files: Sequence[Path]) -> None:
    """Apply files, server-side."""
    if not files:
        return
    names = [word for file in files for word in ("-f", file)]
    await kubectl(api, "apply", "--server-side", "--force-conflicts", *names)


async def apply_labelled(api: ApiServer, kustomization: Path) -> None:
    """Apply a kustomization with the label by which the installer knows what is its own."""
    await kubectl(api, "apply", "--server-side", "--force-conflicts", "-k", _labelled(api, kustomization))


def _labelled(api: ApiServer, kustomization: Path) -> Path:
    folder = api.programs.folder / f"{api.name}-{kustomization.name}"
    folder.mkdir(exist_ok=True)
    labelled = {
        "resources": [os.path.relpath(kustomization, folder.resolve())],
        "labels": [{"pairs": {MANAGED_BY: INSTALLER}}],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(labelled))
    return folder


async def schemas_established(api: ApiServer) -> None:
    """Wait until every CustomResourceDefinition is served."""
    await kubectl(api, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
