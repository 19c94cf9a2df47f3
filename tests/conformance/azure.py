"""Lists the accelerator machines of Azure with Microsoft's own clients.

Usage: azure.py ENDPOINT. Prints a JSON array, one object for each machine and
scale-set member that has accelerators, in the words of gpuwatch. Machines come
from azure-mgmt-compute, and Resource Graph must know the same ones, so whatever
this prints is what those clients understand of the answers.
"""

import csv
import fractions
import json
import pathlib
import re
import sys
import time
import urllib.request

# This file's own name would hide the package of that name.
sys.path.pop(0)

from azure.core.credentials import AccessToken
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.resourcegraph import ResourceGraphClient
from azure.mgmt.resourcegraph.models import QueryRequest, QueryRequestOptions

TOKEN = "fakecloud-access-token"

STATES = {
    "running": "running",
    "starting": "starting",
    "creating": "starting",
    "stopping": "stopping",
    "deallocating": "stopping",
    "stopped": "stopped_billed",
    "deallocated": "stopped",
}

# What no API of Azure tells, or tells wrongly: accelerators of the sizes that
# are known.
CATALOGUE = pathlib.Path(__file__).resolve().parents[2] / "inventory" / "catalog" / "azure_vm_sizes.csv"
GPUS = {
    row["instance_type"].lower(): float(fractions.Fraction(row["accelerator_count"]))
    for row in csv.DictReader(CATALOGUE.open(encoding="utf-8"))
}


class Static:
    """A token that does not end."""

    def get_token(self, *scopes, **options):
        return AccessToken(TOKEN, int(time.time()) + 3600)


def options():
    # The clients refuse to send tokens over plain http, loopback or not.
    return {"enforce_https": False}


def subscriptions():
    request = urllib.request.Request(
        ENDPOINT + "/subscriptions?api-version=2022-12-01",
        headers={"Authorization": "Bearer " + TOKEN},
    )
    with urllib.request.urlopen(request) as answer:
        rows = json.load(answer)["value"]
    return [row["subscriptionId"] for row in rows if row["state"] not in ("Disabled", "Deleted")]


MACHINES = """
Resources
| where type =~ 'microsoft.compute/virtualmachines'
| extend size = tostring(properties.hardwareProfile.vmSize)
| where size matches regex @'(?i)^standard_n[a-oq-z]'
| project id, size
| order by id asc
"""

MEMBERS = """
ComputeResources
| where type in~ ('microsoft.compute/virtualmachinescalesets/virtualmachines')
| where tostring(sku.name) matches regex @'(?i)^standard_n[a-oq-z]'
| project id, size = tostring(sku.name)
| order by id asc
"""


def graph_ids(subscription, query):
    """Ids of machines as Resource Graph pages them."""
    client = ResourceGraphClient(Static(), base_url=ENDPOINT, credential_scopes=[ENDPOINT + "/.default"])
    token, found = None, []
    while True:
        request = QueryRequest(
            subscriptions=[subscription],
            query=query,
            options=QueryRequestOptions(skip_token=token, top=1000, result_format="objectArray"),
        )
        answer = client.resources(request, **options())
        found += answer.data
        token = answer.skip_token
        if not token:
            assert len(found) == answer.total_records, (len(found), answer.total_records)
            assert answer.result_truncated == "false", answer.result_truncated
            return {row["id"].lower() for row in found}


def power(view):
    for status in (view.statuses if view and view.statuses else []):
        if status.code and status.code.lower().startswith("powerstate/"):
            return STATES.get(status.code.split("/")[1].lower(), "unknown")
    return "unknown"


def mode(priority):
    if priority in ("Spot", "Low", "SpotPlus"):
        return "spot"
    return "on_demand" if priority in (None, "", "Regular") else "unknown"


def stated(client, location):
    """Accelerators by size as the list of SKUs states them."""
    if location not in STATED:
        STATED[location] = {
            sku.name.lower(): float(capability.value)
            for sku in client.resource_skus.list(filter=f"location eq '{location}'", **options())
            for capability in sku.capabilities or []
            if sku.resource_type == "virtualMachines" and capability.name == "GPUs"
        }
    return STATED[location]


STATED = {}


def accelerators(client, location, size):
    if size.lower() in GPUS:
        return GPUS[size.lower()]
    return stated(client, location).get(size.lower())


def row(client, subscription, machine, size, state, priority):
    return {
        "account": subscription.lower(),
        "region": machine.location,
        "zone": machine.zones[0] if machine.zones else "",
        "instance_id": machine.id.lower(),
        "name": machine.name,
        "instance_type": size,
        "state": state,
        "billing_mode": mode(priority),
        "gpus": accelerators(client, machine.location, size),
    }


def has_accelerators(size):
    return bool(re.match(r"(?i)^standard_n[a-oq-z]", size or ""))


def machines(subscription):
    client = ComputeManagementClient(
        Static(), subscription, base_url=ENDPOINT, credential_scopes=[ENDPOINT + "/.default"]
    )
    views = {
        machine.id.lower(): machine.instance_view
        for machine in client.virtual_machines.list_all(status_only="true", **options())
    }
    listed = []
    for machine in client.virtual_machines.list_all(**options()):
        size = machine.hardware_profile.vm_size
        if has_accelerators(size):
            state = power(views.get(machine.id.lower()))
            listed.append(row(client, subscription, machine, size, state, machine.priority))
    assert {entry["instance_id"] for entry in listed} == graph_ids(subscription, MACHINES)
    alone = len(listed)
    for scale_set in client.virtual_machine_scale_sets.list_all(**options()):
        # The sizes of a mixed set are those of its members.
        may_fit = scale_set.sku.name == "Mix" or has_accelerators(scale_set.sku.name)
        if scale_set.orchestration_mode == "Flexible" or not may_fit:
            continue
        group = scale_set.id.split("/")[4]
        priority = scale_set.virtual_machine_profile.priority
        members = client.virtual_machine_scale_set_vms.list(
            group, scale_set.name, expand="instanceView", **options()
        )
        for member in members:
            if not has_accelerators(member.sku.name):
                continue
            listed.append(
                row(client, subscription, member, member.sku.name, power(member.instance_view), priority)
            )
    assert {entry["instance_id"] for entry in listed[alone:]} == graph_ids(subscription, MEMBERS)
    return listed


ENDPOINT = sys.argv[1].rstrip("/")
print(json.dumps([entry for subscription in subscriptions() for entry in machines(subscription)]))
