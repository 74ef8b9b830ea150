from __future__ import annotations

from django.conf import settings
from django.db import models

from .review import Decision, Review


class Kernel(models.Model):
    """An approved kernel on the shelf: one row for each approval. What it is, stands in the attempt that was signed.

    Whether it is in force is asked, never stored: a later decision or a change of what was signed takes it off.
    """

    review = models.OneToOneField(Review, on_delete=models.CASCADE, related_name="kernel")
    operator = models.CharField(max_length=100, db_index=True)
    hardware = models.CharField(max_length=200, help_text="Where it was measured: cpu, or the GPU's name")
    backend = models.CharField(max_length=20)
    created_at = models.DateTimeField(auto_now_add=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    withdrawn_reason = models.TextField(blank=True)

    class Meta:
        ordering = ("operator", "id")

    def __str__(self) -> str:
        return f"{self.operator} {self.review.sha256[:12]}"

    def why_not(self) -> str:
        """Why it is not in force, or "" when it is."""
        attempt = self.review.attempt
        if self.withdrawn_at:
            return f"withdrawn: {self.withdrawn_reason}"
        if attempt.decision != Decision.APPROVED or attempt.decision_seq != self.review.seq:
            return f"a later decision: {attempt.decision}"
        if self.review.is_stale():
            return "stale: what was signed is not what is stored"
        if attempt.open_blocks():
            return "a blocking flag stands open"
        return ""

    def in_force(self) -> bool:
        return not self.why_not()


class KernelExport(models.Model):
    """Kernels that left the house. When one of them is withdrawn later, the export is shown as holding it."""

    form = models.CharField(max_length=10, help_text="package, archive or patch")
    name = models.CharField(max_length=100, help_text="The package's name")
    sha256 = models.CharField(max_length=64, db_index=True, help_text="Of the file that was handed out")
    kernels = models.ManyToManyField(Kernel, related_name="exports")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.name} {self.form} {self.sha256[:12]}"

    def no_longer_good(self) -> list[Kernel]:
        """The kernels in it that are not in force any more."""
        held = self.kernels.select_related("review__attempt__campaign")
        return [kernel for kernel in held if kernel.why_not()]
