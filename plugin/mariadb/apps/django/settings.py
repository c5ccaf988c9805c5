"""Django's settings for its own suite on the server whose socket is in WEIR_SOCKET; what was seen goes to RESULTS (runner.py)."""

import os


def database(name):
    return {
        "ENGINE": "django.db.backends.mysql",
        "HOST": os.environ["WEIR_SOCKET"],
        "USER": "root",
        "NAME": name,
        "TEST": {"CHARSET": "utf8mb4"},
    }


DATABASES = {"default": database("django"), "other": database("django2")}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "runner.Runner"
