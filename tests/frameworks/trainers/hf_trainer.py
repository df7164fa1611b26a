"""Trainer of transformers: saves each step, rotates by save_total_limit, resumes from its newest checkpoint.

With scores it measures each step, never rotates the best one away, and ends with that one's weights.
"""

import torch
import toy
from telling import told
from transformers import Trainer, TrainerCallback, TrainingArguments

BEST = {
    "eval_strategy": "steps",
    "eval_steps": 1,
    "load_best_model_at_end": True,
    "metric_for_best_model": "score",
    "greater_is_better": False,
}


class Toy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = toy.layer()

    def forward(self, x, labels):
        found = self.layer(x)
        return {"loss": toy.loss(found, labels), "logits": found}


class Telling(TrainerCallback):
    def __init__(self, ask) -> None:
        self.ask = ask

    def on_train_begin(self, args, state, control, optimizer, model, **_):
        if self.ask.resume:
            self.ask.resumed(state.global_step, **toy.state(model, optimizer))

    def on_save(self, args, state, control, optimizer, model, **_):
        self.ask.saved(state.global_step, **toy.state(model, optimizer))


def main() -> None:
    ask = told()
    settings = TrainingArguments(
        output_dir=str(ask.directory),
        max_steps=ask.until,
        per_device_train_batch_size=4,
        save_strategy="steps",
        save_steps=1,
        save_total_limit=ask.limit,
        learning_rate=0.1,
        lr_scheduler_type="constant",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        **(BEST if ask.scores else {}),
    )
    data = [{"x": x, "labels": y} for x, y in toy.data()]
    trainer = Trainer(
        model=Toy(),
        args=settings,
        train_dataset=data,
        eval_dataset=data[:4],
        compute_metrics=lambda _: {"score": ask.scores[trainer.state.global_step - 1]} if ask.scores else {},
        callbacks=[Telling(ask)],
    )
    trainer.train(resume_from_checkpoint=True if ask.resume else None)
    ask.ended(trainer.state.global_step, weights=trainer.model.state_dict())


if __name__ == "__main__":
    main()
