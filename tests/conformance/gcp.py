"""Lists the accelerator machines of Google Cloud with Google's own client.

Usage: gcp.py ENDPOINT. Prints a JSON array, one object for each machine of
Compute Engine that has accelerators, in the words of gpuwatch. Only
google-cloud-compute reads and pages the answers, so whatever this prints is
what Google's client understands of them. Nodes of the Cloud TPU API are left
out: its Python client speaks gRPC only.
"""

import json
import re
import sys
import urllib.parse
import urllib.request

from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

STATES = {
    "PENDING": "starting",
    "PROVISIONING": "starting",
    "STAGING": "starting",
    "RUNNING": "running",
    "REPAIRING": "stopped_billed",
    "PENDING_STOP": "stopping",
    "STOPPING": "stopping",
    "DEPROVISIONING": "stopping",
    "SUSPENDING": "stopping",
    "STOPPED": "stopped",
    "TERMINATED": "stopped",
    "SUSPENDED": "stopped",
}

# The API counts a part of a card as one accelerator.
SHARES = {"g4-standard-6": 0.125, "g4-standard-12": 0.25, "g4-standard-24": 0.5}

# Machine types that have accelerators even when no list has them.
FAMILIES = re.compile(r"(a2|a3|a4|a4x|a9|g2|g4|ct\w+|tpu\w+)-")


def client(kind):
    return kind(
        transport="rest",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": ENDPOINT},
    )


def last(link):
    return link.rsplit("/", 1)[-1]


def projects():
    """Ids of the projects in use; there is no client for this in the package."""
    token, found = "", []
    while True:
        query = urllib.parse.urlencode({"query": "state:ACTIVE", "pageToken": token})
        with urllib.request.urlopen(ENDPOINT + "/v3/projects:search?" + query) as answer:
            page = json.load(answer)
        found += [project["projectId"] for project in page.get("projects", [])]
        token = page.get("nextPageToken", "")
        if not token:
            return found


def rows(kind, field, project):
    """All rows of an aggregated list. A zone may come on several pages."""
    request = {"project": project, "max_results": 500}
    for scope, scoped in client(kind).aggregated_list(request=request):
        for row in getattr(scoped, field):
            yield scope, row


def machine_types(project):
    """Accelerators that come with a machine type, by its name."""
    return {
        row.name: sum(part.guest_accelerator_count for part in row.accelerators)
        for _, row in rows(compute_v1.MachineTypesClient, "machine_types", project)
    }


def committed(names):
    """Reservations that a commitment pays for, as resource names."""
    found = set()
    for project in names:
        for _, row in rows(compute_v1.ReservationsClient, "reservations", project):
            if row.commitment or row.linked_commitments:
                zone = last(row.zone)
                found.add(f"projects/{project}/zones/{zone}/reservations/{row.name}")
    return found


def billing_mode(machine, paid_for):
    scheduling = machine.scheduling
    model = scheduling.provisioning_model
    if model == "SPOT" or scheduling.preemptible:
        return "spot"
    if model == "RESERVATION_BOUND":
        return "reserved"
    if model == "FLEX_START":
        return "on_demand"
    if model not in ("", "STANDARD"):
        return "unknown"
    consumed = machine.resource_status.reservation_consumption_info.consumed_reservation
    return "reserved" if consumed in paid_for else "on_demand"


def accelerators(machine, types):
    """How many, `None` when nobody knows, 0 for an ordinary machine."""
    name = last(machine.machine_type)
    of_type = types.get(name, 0) * SHARES.get(name, 1)
    attached = sum(part.accelerator_count for part in machine.guest_accelerators)
    if of_type or attached:
        return of_type or attached
    return None if name not in types and FAMILIES.match(name) else 0


def main():
    names = projects()
    paid_for = committed(names)
    found = []
    for project in names:
        types = machine_types(project)
        for scope, machine in rows(compute_v1.InstancesClient, "instances", project):
            gpus = accelerators(machine, types)
            if gpus == 0:
                continue
            zone = last(machine.zone)
            assert scope == "zones/" + zone, (scope, zone)
            found.append(
                {
                    "account": project,
                    "region": zone.rsplit("-", 1)[0],
                    "zone": zone,
                    "instance_id": str(machine.id),
                    "name": machine.name,
                    "instance_type": last(machine.machine_type),
                    "state": STATES.get(machine.status, "unknown"),
                    "billing_mode": billing_mode(machine, paid_for),
                    "gpus": gpus,
                }
            )
    json.dump(found, sys.stdout)


ENDPOINT = sys.argv[1].rstrip("/")
main()
