"""What the ExLlama engines say of the model that they have loaded."""

from __future__ import annotations

from hookline.engine import Card
from hookline.engines.exllama_backend import Backend
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import Version
from hookline.engines.exllama_tokenizer import FolderTokenizer


def describe(
    version: Version,
    model_id: str,
    folder: ModelFolder,
    draft: ModelFolder | None,
    backend: Backend,
    tokenizer: FolderTokenizer,
) -> Card:
    """The card of a loaded model. Nobody has measured yet that its batches are exact."""
    template = folder.chat_template or ""
    details = {
        "folder": folder.path.name,
        "size_bytes": folder.size,
        "quantization": folder.quantization,
        "kv_bytes": backend.kv_bytes,
        **backend.details,
    }
    if draft is not None:
        details["draft_model"] = draft.path.name
    return Card(
        id=model_id,
        engine=version,
        context=backend.context,
        parallel=backend.parallel,
        exact_batches=False,
        vocabulary=tokenizer.size,
        chat_template=folder.chat_template,
        bos=tokenizer.bos,
        eos=tokenizer.eos,
        special_tokens=tokenizer.special_texts,
        longest_token=tokenizer.longest,
        tools="tools" in template,
        thinking="enable_thinking" in template or "<think>" in template,
        vision=backend.sees,
        details=details,
    )
