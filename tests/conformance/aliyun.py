#!/usr/bin/env python3
"""Lists accelerator machines through Alibaba Cloud's official Python SDK.

Usage: aliyun.py ENDPOINT [ROLE_ARN...]

Keys come from ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET,
and are those of the simulated cloud unless set.
The account of the keys is listed, and the account of every role. Prints a JSON
array of instances, in gpuwatch's words for states and billing modes. Nothing
here knows more than the SDK's answers tell: a slice of a card has no count.
"""

import json
import os
import re
import sys

from alibabacloud_ecs20140526 import models
from alibabacloud_ecs20140526.client import Client as EcsClient
from alibabacloud_tea_openapi.client import Client as OpenApiClient
from alibabacloud_tea_openapi.models import Config, OpenApiRequest, Params
from darabonba.runtime import RuntimeOptions

GPU_FAMILY = re.compile(r"^ecs\.(ebm|scc)?[vs]?gn\d")
SLICES = re.compile(r"^ecs\.[vs]gn\d")

STATES = {"Pending": "starting", "Starting": "starting", "Running": "running", "Stopping": "stopping"}


def config(host, keys, signature=None):
    return Config(
        access_key_id=keys["AccessKeyId"],
        access_key_secret=keys["AccessKeySecret"],
        security_token=keys.get("SecurityToken"),
        endpoint=host,
        protocol="http",
        region_id="cn-hangzhou",
        signature_algorithm=signature,
    )


def sts(host, keys, action, query):
    """There is no package of STS here: the SDK's generic client calls it."""
    params = Params(
        action=action, version="2015-04-01", protocol="HTTP", pathname="/", method="POST", auth_type="AK",
        style="RPC", req_body_type="formData", body_type="json",
    )
    client = OpenApiClient(config(host, keys))
    return client.call_api(params, OpenApiRequest(query=query), RuntimeOptions())["body"]


def regions(host, keys):
    """With the older signature, so that both are tried."""
    client = EcsClient(config(host, keys, "v2"))
    body = client.describe_regions(models.DescribeRegionsRequest(accept_language="en-US")).body
    return [region.region_id for region in body.regions.region]


def instances(client, region):
    token = None
    while True:
        request = models.DescribeInstancesRequest(region_id=region, max_results=100, next_token=token)
        body = client.describe_instances(request).body
        yield from body.instances.instance or []
        token = body.next_token
        if not token:
            return


def cards_of_types(client, names):
    """GPUAmount of types, from the type API."""
    cards = {}
    names = sorted(names)
    for start in range(0, len(names), 10):
        token = None
        while True:
            request = models.DescribeInstanceTypesRequest(
                instance_types=names[start:start + 10], max_results=100, next_token=token)
            body = client.describe_instance_types(request).body
            for row in body.instance_types.instance_type or []:
                cards[row.instance_type_id] = row.gpuamount
            token = body.next_token
            if not token:
                break
    return cards


def renewals(client, region, ids):
    """What happens at the end of subscriptions, a hundred at a time."""
    words = {}
    for start in range(0, len(ids), 100):
        request = models.DescribeInstanceAutoRenewAttributeRequest(
            region_id=region, instance_id=",".join(ids[start:start + 100]), page_size="100", page_number="1")
        body = client.describe_instance_auto_renew_attribute(request).body
        for row in body.instance_renew_attributes.instance_renew_attribute:
            words[row.instance_id] = row.renewal_status
    return words


def state(instance):
    if instance.status != "Stopped":
        return STATES.get(instance.status, "unknown")
    free = instance.instance_charge_type == "PostPaid" and instance.stopped_mode == "StopCharging"
    return "stopped" if free else "stopped_billed"


def billing_mode(instance):
    if instance.instance_charge_type == "PrePaid":
        return "reserved"
    if instance.instance_charge_type != "PostPaid":
        return "unknown"
    return "on_demand" if instance.spot_strategy in (None, "", "NoSpot") else "spot"


def account(host, keys):
    uid = sts(host, keys, "GetCallerIdentity", {})["AccountId"]
    client = EcsClient(config(host, keys))
    for region in regions(host, keys):
        found = [row for row in instances(client, region) if row.gpuamount or GPU_FAMILY.match(row.instance_type)]
        untold = {row.instance_type for row in found if not row.gpuamount}
        cards = cards_of_types(client, untold) if untold else {}
        renewal = renewals(client, region, [row.instance_id for row in found if row.instance_charge_type == "PrePaid"])
        for row in found:
            count = row.gpuamount or cards.get(row.instance_type) or None
            yield {
                "account": uid,
                "region": row.region_id,
                "zone": row.zone_id,
                "instance_id": row.instance_id,
                "name": row.instance_name,
                "instance_type": row.instance_type,
                "state": state(row),
                "billing_mode": billing_mode(row),
                "renewal": renewal.get(row.instance_id),
                "gpus": None if SLICES.match(row.instance_type) else count,
            }


def main():
    host = sys.argv[1].removeprefix("http://").rstrip("/")
    base = {
        "AccessKeyId": os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAI5tEXAMPLEfakecloud00"),
        "AccessKeySecret": os.environ.get("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "fakecloudExampleSecret00000000"),
    }
    all_keys = [base]
    for role in sys.argv[2:]:
        query = {"RoleArn": role, "RoleSessionName": "conformance", "DurationSeconds": "900"}
        all_keys.append(sts(host, base, "AssumeRole", query)["Credentials"])
    json.dump([row for keys in all_keys for row in account(host, keys)], sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
