"""A whole run of training: source, trainer, epochs, checkpoints, going on after a stop."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from trivet.impl._perception import report
from trivet.impl._perception.checkpoint import Checkpoint, CheckpointError, load, save
from trivet.impl._perception.model import PerceptionModel
from trivet.impl._perception.settings import Settings
from trivet.impl._perception.source import Batch, Events, Windows, read, synthetic
from trivet.impl._perception.trainer import Step, Trainer
from trivet.impl._whole import written

LAST, REPORTS = "last.safetensors", "report.jsonl"
# The shares of time for training and validation; the rest is for the test.
TRAINING, VALIDATION = 0.7, 0.15


@dataclass(frozen=True)
class Scores:
    """A model on windows it was not trained on: per horizon (N,), from p of successive events."""

    loss: np.ndarray
    constant_loss: np.ndarray
    auc: np.ndarray
    run_length: np.ndarray
    label_run_length: np.ndarray


class Run:
    """One run in one folder, from its start or from a checkpoint.

    Raises EventsError, SettingsError or CheckpointError where it cannot be.
    """

    def __init__(self, settings: Settings, folder: Path, device: str = "cpu") -> None:
        self.settings, self.folder, self.device = settings, folder, device
        parts = [events.cut(TRAINING, VALIDATION) for events in _files(settings)]
        training, validation, test = zip(*parts, strict=True)
        self.training = self._windows(training)
        self.validation, self.test = self._windows(validation), self._windows(test)
        sizes = settings.sizes(self.training.files[0].x.shape[1])
        self.model = PerceptionModel(sizes, settings.seed, device)
        self.trainer = Trainer(
            self.model,
            settings.horizons,
            settings.rates(),
            settings.smoothness_base_lambda,
            transition_by=settings.transition_by,
        )
        self.best = [-math.inf] * len(settings.horizons)

    def _windows(self, files: Sequence[Events]) -> Windows:
        chosen = self.settings
        sizes = (chosen.window, chosen.batch, chosen.seed, chosen.horizons, chosen.shuffle)
        return Windows(files, *sizes)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint; raises CheckpointError or SettingsError."""
        kept = load(path, self.device)
        self.settings.check_same(Settings.of(str(kept.counters.get("settings", ""))))
        try:
            self.trainer.load(kept)
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None
        horizons = self.settings.horizons
        self.best = [float(kept.counters[f"best_auc_h{each}"]) for each in horizons]

    def perform(
        self, stepped: Callable[[Step], None], told: Callable[[report.Report], None]
    ) -> Scores:
        """Train to the last step, an epoch at a time; returns the scores on the test events."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._forget_reports()
        while self.trainer.done < self.settings.steps:
            place = 0 if self.settings.overfit else self.trainer.done
            stepped(self.trainer.step(self._moved(self.training.batch(place))))
            done = self.trainer.done
            if done % self.settings.epoch == 0 or done == self.settings.steps:
                told(self._finish_epoch())
        return self.scores(self.test)

    def _finish_epoch(self) -> report.Report:
        scores = self.scores(self.validation)
        found = self._report(scores)
        line = json.dumps(found.fields()) + "\n"
        self._write_reports([*self._reports(), line])
        better = [k for k, auc in enumerate(scores.auc) if auc > self.best[k]]
        for k in better:
            self.best[k] = float(scores.auc[k])
        for k in better:
            save(self.folder / f"best-h{self.settings.horizons[k]}.safetensors", self.checkpoint())
        save(self.folder / LAST, self.checkpoint())
        return found

    def checkpoint(self) -> Checkpoint:
        """All that a run needs to go on, bitwise as if it had never stopped."""
        kept = self.trainer.checkpoint()
        best = zip(self.settings.horizons, self.best, strict=True)
        counters = {f"best_auc_h{horizon}": auc for horizon, auc in best}
        told = {"settings": self.settings.text()}
        return replace(kept, counters={**kept.counters, **counters, **told})

    @torch.no_grad()
    def scores(self, windows: Windows) -> Scores:
        """Look at tiles of these windows, which follow one another in time."""
        tiles = self._moved(windows.tiles(self.settings.tiles))
        p = self.model(tiles.x, tiles.dt).p.transpose(0, 1).flatten(0, 1).cpu().numpy()
        labels = tiles.labels.flatten(0, 1).cpu().numpy()
        pairs = list(zip(p.T, labels.T, strict=True))
        return Scores(
            np.array([report.entropy(*pair) for pair in pairs]),
            np.array([report.constant_entropy(label) for _, label in pairs]),
            np.array([report.area_under_curve(*pair) for pair in pairs]),
            np.array([report.mean_run_length(own) for own, _ in pairs]),
            np.array([report.mean_run_length(label) for _, label in pairs]),
        )

    def _report(self, scores: Scores) -> report.Report:
        trainer = self.trainer
        jitter = trainer.jitter().cpu().numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = jitter / jitter[0]
        return report.Report(
            step=trainer.done,
            phase=trainer.phase,
            loss=report.listed(scores.loss),
            constant_loss=report.listed(scores.constant_loss),
            auc=report.listed(scores.auc),
            jitter=report.listed(jitter),
            jitter_ratio=report.listed(ratio),
            smoothness_lambda=report.listed(trainer.smoothness_lambda().tolist()),
            run_length=report.listed(scores.run_length),
            label_run_length=report.listed(scores.label_run_length),
            alike=report.alike(scores.run_length.tolist(), scores.label_run_length.tolist()),
            degraded=trainer.degraded(),
        )

    def _moved(self, batch: Batch) -> Batch:
        return Batch(*(tensor.to(self.device) for tensor in batch))

    def _reports(self) -> list[str]:
        place = self.folder / REPORTS
        return place.read_text().splitlines(keepends=True) if place.exists() else []

    def _forget_reports(self) -> None:
        """Leave only the epochs up to the checkpoint: later ones come again."""
        held = self._reports()
        kept = [line for line in held if json.loads(line)["step"] <= self.trainer.done]
        if kept != held:
            self._write_reports(kept)

    def _write_reports(self, lines: list[str]) -> None:
        written(self.folder / REPORTS, lambda file: file.write("".join(lines).encode()))


def _files(settings: Settings) -> list[Events]:
    if settings.data:
        return [events for path in settings.data for events in read(Path(path))]
    return [synthetic(settings.seed, settings.events, settings.horizons)]
