import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("campaigns", "0008_problem_import"),
        ("profiling", "0001_profile_and_region"),
    ]

    operations = [
        migrations.CreateModel(
            name="AttemptProfile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(help_text="candidate or baseline", max_length=10)),
                ("tool", models.CharField(help_text="torch, nsys or ncu", max_length=10)),
                ("workload", models.CharField(blank=True, max_length=200)),
                ("host", models.CharField(blank=True, max_length=200)),
                ("problem", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="profiles", to="campaigns.attempt"
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="taken_for",
                        to="profiling.profile",
                    ),
                ),
            ],
            options={
                "ordering": ("attempt", "role", "tool"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "role", "tool"), name="attempt_profile_once_per_role_and_tool"
                    )
                ],
            },
        ),
    ]
