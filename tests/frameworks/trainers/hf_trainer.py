"""Trainer of transformers: saves each step, rotates by save_total_limit, resumes from its newest checkpoint."""

import torch
from telling import told
from transformers import Trainer, TrainerCallback, TrainingArguments


class Toy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}


class Telling(TrainerCallback):
    def __init__(self, ask) -> None:
        self.ask = ask

    def on_train_begin(self, args, state, control, optimizer, model, **_):
        if self.ask.resume:
            self.ask.resumed(state.global_step, optimizer=optimizer.state_dict(), weights=model.state_dict())

    def on_save(self, args, state, control, optimizer, model, **_):
        self.ask.saved(state.global_step, optimizer=optimizer.state_dict(), weights=model.state_dict())


def main() -> None:
    ask = told()
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    data = [{"x": torch.randn(8, generator=draw), "labels": torch.randn(4, generator=draw)} for _ in range(256)]
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
    )
    trainer = Trainer(model=Toy(), args=settings, train_dataset=data, callbacks=[Telling(ask)])
    trainer.train(resume_from_checkpoint=True if ask.resume else None)
    ask.ended(trainer.state.global_step)


if __name__ == "__main__":
    main()
