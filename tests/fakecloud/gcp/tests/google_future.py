"""Lists future reservations with Google's own client.

Usage: google_future.py ENDPOINT. Prints a JSON array of what the client reads.
"""

import json
import sys

from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

client = compute_v1.FutureReservationsClient(
    transport="rest",
    credentials=AnonymousCredentials(),
    client_options={"api_endpoint": sys.argv[1].rstrip("/")},
)
found = [
    {
        "scope": scope,
        "id": str(row.id),
        "mode": row.reservation_mode,
        "status": row.status.procurement_status,
        "count": row.specific_sku_properties.total_count,
        "machine_type": row.specific_sku_properties.instance_properties.machine_type,
        "ends": row.time_window.end_time,
        "reservations": [link.rsplit("/", 1)[-1] for link in row.status.auto_created_reservations],
    }
    for scope, scoped in client.aggregated_list(request={"project": "p", "max_results": 500})
    for row in scoped.future_reservations
]
json.dump(found, sys.stdout)
