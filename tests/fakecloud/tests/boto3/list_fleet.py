"""Lists a whole AWS world with boto3 and prints it as JSON.

Usage: list_fleet.py URL HOME_REGION. Credentials come from the environment.
Only boto3's own paginators, parsers and signing are used, so whatever this
prints is what AWS's official SDK understands of the answers.
"""

import json
import sys

import boto3
from botocore.config import Config

FAMILIES = ["p*", "g*", "inf*", "trn*", "dl*", "vt*"]


def client(session, service, region):
    config = Config(retries={"max_attempts": 1}, parameter_validation=True)
    return session.client(service, region_name=region, endpoint_url=URL, config=config)


def tags(row):
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags", [])}


def moment(value):
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def instances(ec2, page_size):
    rows = {}
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-type", "Values": FAMILIES}],
        IncludeManagedResources=True,
        PaginationConfig={"PageSize": page_size},
    )
    for page in pages:
        for reservation in page["Reservations"]:
            for row in reservation["Instances"]:
                assert row["InstanceId"] not in rows, "row sent twice: " + row["InstanceId"]
                rows[row["InstanceId"]] = {
                    "owner": reservation["OwnerId"],
                    "launch_reservation": reservation["ReservationId"],
                    "type": row["InstanceType"],
                    "state": row["State"]["Name"],
                    "lifecycle": row.get("InstanceLifecycle"),
                    "zone": row["Placement"]["AvailabilityZone"],
                    "tenancy": row["Placement"]["Tenancy"],
                    "launched": moment(row["LaunchTime"]),
                    "reason": row.get("StateTransitionReason") or None,
                    "private_ip": row.get("PrivateIpAddress", ""),
                    "platform": row["PlatformDetails"],
                    "operation": row["UsageOperation"],
                    "capacity_reservation": row.get("CapacityReservationId"),
                    "capacity_block": row.get("CapacityBlockId"),
                    "managed_by": row.get("Operator", {}).get("Principal"),
                    "tags": tags(row),
                }
    return rows


def reserved(ec2):
    return {
        row["ReservedInstancesId"]: {
            "type": row["InstanceType"],
            "count": row["InstanceCount"],
            "scope": row["Scope"],
            "zone": row.get("AvailabilityZone"),
            "state": row["State"],
            "platform": row["ProductDescription"],
            "hourly": sum(charge["Amount"] for charge in row["RecurringCharges"]),
            "end": moment(row["End"]),
            "seconds": row["Duration"],
        }
        for row in ec2.describe_reserved_instances()["ReservedInstances"]
    }


def capacity(ec2):
    rows = {}
    for page in ec2.get_paginator("describe_capacity_reservations").paginate(PaginationConfig={"PageSize": 2}):
        for row in page["CapacityReservations"]:
            rows[row["CapacityReservationId"]] = {
                "owner": row["OwnerId"],
                "type": row["InstanceType"],
                "total": row["TotalInstanceCount"],
                "available": row["AvailableInstanceCount"],
                "state": row["State"],
                "kind": row["ReservationType"],
                "block": row.get("CapacityBlockId"),
                "billing_owner": row.get("UnusedReservationBillingOwnerId"),
                "interruptible": row["Interruptible"],
            }
    return rows


def blocks(ec2):
    rows = {}
    for page in ec2.get_paginator("describe_capacity_blocks").paginate():
        for row in page["CapacityBlocks"]:
            rows[row["CapacityBlockId"]] = {
                "reservations": row["CapacityReservationIds"],
                "state": row["State"],
                "end": moment(row["EndDate"]),
            }
    for page in ec2.get_paginator("describe_capacity_block_status").paginate():
        for row in page["CapacityBlockStatuses"]:
            rows[row["CapacityBlockId"]]["total"] = row["TotalCapacity"]
            rows[row["CapacityBlockId"]]["available"] = row["TotalAvailableCapacity"]
    return rows


def device(row):
    """Name, count and memory from whichever section the type has."""
    for section, name, count in (
        ("GpuInfo", "Gpus", lambda d: d["LogicalGpuCount"] * d["GpuPartitionSize"]),
        ("NeuronInfo", "NeuronDevices", lambda d: d["Count"]),
        ("InferenceAcceleratorInfo", "Accelerators", lambda d: d["Count"]),
        ("MediaAcceleratorInfo", "Accelerators", lambda d: d["Count"]),
        ("FpgaInfo", "Fpgas", lambda d: d["Count"]),
    ):
        if section in row:
            (one,) = row[section][name]
            return {"name": one["Name"], "count": float(count(one)), "mib": one["MemoryInfo"]["SizeInMiB"]}
    return None


def types(ec2):
    rows = {}
    pages = ec2.get_paginator("describe_instance_types").paginate(
        Filters=[{"Name": "instance-type", "Values": FAMILIES}],
        IncludeUnsupportedInRegion=True,
        PaginationConfig={"PageSize": 10},
    )
    for page in pages:
        for row in page["InstanceTypes"]:
            rows[row["InstanceType"]] = {
                "vcpus": row["VCpuInfo"]["DefaultVCpus"],
                "mib": row["MemoryInfo"]["SizeInMiB"],
                "classes": row["SupportedUsageClasses"],
                "supported": row["SupportedInRegion"],
                "device": device(row),
            }
    return rows


def looped(call, items, **arguments):
    """Operations without a paginator."""
    rows, token = [], None
    while True:
        page = call(**arguments, **({"nextToken": token} if token else {}))
        rows += page[items]
        token = page.get("nextToken")
        if not token:
            return rows


def plans(session):
    api = client(session, "savingsplans", HOME)
    rows = {}
    for row in looped(api.describe_savings_plans, "savingsPlans", maxResults=1):
        found = looped(
            api.describe_savings_plan_rates, "searchResults", maxResults=1, savingsPlanId=row["savingsPlanId"]
        )
        rates = {}
        for rate in found:
            facts = {fact["name"]: fact["value"] for fact in rate["properties"]}
            rates[facts["region"] + "/" + facts["instanceType"]] = rate["rate"]
        rows[row["savingsPlanId"]] = {
            "type": row["savingsPlanType"],
            "family": row.get("ec2InstanceFamily"),
            "region": row.get("region"),
            "commitment": row["commitment"],
            "currency": row["currency"],
            "state": row["state"],
            "rates": rates,
        }
    return rows


def account(session):
    identity = client(session, "sts", HOME).get_caller_identity()
    enabled = client(session, "ec2", HOME).describe_regions()["Regions"]
    listing = {"arn": identity["Arn"], "plans": plans(session), "regions": {}}
    for region in sorted(row["RegionName"] for row in enabled):
        ec2 = client(session, "ec2", region)
        listing["regions"][region] = {
            "instances": instances(ec2, 7),
            "reserved": reserved(ec2),
            "capacity": capacity(ec2),
            "blocks": blocks(ec2),
        }
    return identity["Account"], listing


def assumed(role_arn):
    answer = client(boto3.Session(), "sts", HOME).assume_role(RoleArn=role_arn, RoleSessionName="boto3")
    keys = answer["Credentials"]
    return boto3.Session(
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )


def main():
    base = boto3.Session()
    found, listing = account(base)
    accounts = {found: listing}
    members = []
    for page in client(base, "organizations", HOME).get_paginator("list_accounts").paginate():
        members += page["Accounts"]
    partition = listing["arn"].split(":")[1]
    for member in members:
        if member["State"] == "ACTIVE" and member["Id"] != found:
            name, listing = account(assumed(f"arn:{partition}:iam::{member['Id']}:role/gpuwatch"))
            accounts[name] = listing
    json.dump(
        {
            "members": {member["Id"]: [member["Name"], member["State"]] for member in members},
            "types": types(client(base, "ec2", HOME)),
            "accounts": accounts,
        },
        sys.stdout,
    )


URL, HOME = sys.argv[1:]
main()
