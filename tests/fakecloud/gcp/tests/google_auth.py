"""Gets tokens with Google's own library and calls with each of them.

Usage: google_auth.py JSON. Prints, for every kind of credentials, the status of
a call with its token, or what the token endpoint said.
"""

import json
import sys

import google.auth
import google.auth.compute_engine
import google.auth.identity_pool
import google.auth.impersonated_credentials
import google.auth.transport.requests
import google.oauth2.credentials
import google.oauth2.service_account
import requests
from google.auth.exceptions import RefreshError

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
INPUT = json.loads(sys.argv[1])
SESSION = google.auth.transport.requests.Request()


def status(credentials):
    try:
        credentials.refresh(SESSION)
    except RefreshError as error:
        return str(error.args[0])
    return call(credentials.token)


def call(token):
    url = INPUT["endpoint"] + "/compute/v1/projects/p/zones"
    return requests.get(url, headers={"authorization": "Bearer " + token}).status_code


def service_account():
    info = INPUT["service_account"]
    return google.oauth2.service_account.Credentials.from_service_account_info(info)


def self_signed():
    credentials = service_account().with_always_use_jwt_access(True)
    credentials._create_self_signed_jwt("https://compute.googleapis.com/")
    return status(credentials)


def workload(name):
    return google.auth.identity_pool.Credentials.from_info(INPUT[name], scopes=SCOPES)


def user():
    """As the library reads the file, but for its token endpoint."""
    info = INPUT["user"]
    return google.oauth2.credentials.Credentials(
        None,
        refresh_token=info["refresh_token"],
        token_uri=info["token_uri"],
        client_id=info["client_id"],
        client_secret=info["client_secret"],
    )


def impersonated():
    source = user()
    credentials = google.auth.impersonated_credentials.Credentials(
        source_credentials=source,
        target_principal=INPUT["target"],
        target_scopes=SCOPES,
        iam_endpoint_override=INPUT["endpoint"]
        + f"/v1/projects/-/serviceAccounts/{INPUT['target']}:generateAccessToken",
    )
    return status(credentials)


print(
    json.dumps(
        {
            "service_account": status(service_account().with_scopes(SCOPES)),
            "self_signed": self_signed(),
            "user": status(user()),
            "workload": status(workload("workload")),
            "workload_as": status(workload("workload_as")),
            "impersonated": impersonated(),
            "metadata": status(google.auth.compute_engine.Credentials()),
        }
    )
)
