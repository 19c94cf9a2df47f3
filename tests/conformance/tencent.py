"""Lists the GPU instances of Tencent Cloud with the vendor's own SDK.

Usage: tencent.py ENDPOINT [ROLE_ARN ...]. Prints a JSON array, one object for
each CVM instance that has GPUs, in the words of gpuwatch: of the account of
the keys, and of each account whose role is given. The SDK signs, pages and
reads, so whatever this prints is what it understands of the answers.
"""

import json
import re
import sys

from tencentcloud.common import credential
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.cvm.v20170312 import cvm_client
from tencentcloud.cvm.v20170312 import models as cvm
from tencentcloud.region.v20220627 import models as regions
from tencentcloud.region.v20220627 import region_client
from tencentcloud.sts.v20180813 import models as sts
from tencentcloud.sts.v20180813 import sts_client

SECRET_ID = "AKIDfakecloudExample0000000000000000"
SECRET_KEY = "fakecloudExampleKey0000000000000"

STATES = {
    "RUNNING": "running",
    "REBOOTING": "running",
    "PENDING": "starting",
    "STARTING": "starting",
    "STOPPING": "stopping",
    "SHUTDOWN": "stopping",
    "TERMINATING": "stopping",
}

MODES = {"POSTPAID_BY_HOUR": "on_demand", "SPOTPAID": "spot", "PREPAID": "reserved", "CDHPAID": "reserved"}

FAMILIES = re.compile(r"^(GN|GI|PNV|GT|GC|BMG|PTX|HCCG|HCCPNV|HCCTG)")


def profile():
    http = HttpProfile(protocol="http", endpoint=ENDPOINT.split("://")[1], reqMethod="POST")
    return ClientProfile(httpProfile=http, signMethod="TC3-HMAC-SHA256")


def accounts(roles):
    base = credential.Credential(SECRET_ID, SECRET_KEY)
    yield base
    client = sts_client.StsClient(base, "ap-guangzhou", profile())
    for role in roles:
        request = sts.AssumeRoleRequest()
        request.RoleArn, request.RoleSessionName = role, "conformance"
        keys = client.AssumeRole(request).Credentials
        yield credential.Credential(keys.TmpSecretId, keys.TmpSecretKey, keys.Token)


def account_id(keys):
    client = sts_client.StsClient(keys, "ap-guangzhou", profile())
    return client.GetCallerIdentity(sts.GetCallerIdentityRequest()).AccountId


def region_names(keys):
    request = regions.DescribeRegionsRequest()
    request.Product = "cvm"
    answer = region_client.RegionClient(keys, None, profile()).DescribeRegions(request)
    return [region.Region for region in answer.RegionSet if region.RegionState == "AVAILABLE"]


def instances(client):
    offset = 0
    while True:
        request = cvm.DescribeInstancesRequest()
        request.Offset, request.Limit = offset, 100
        answer = client.DescribeInstances(request)
        yield from answer.InstanceSet
        offset += len(answer.InstanceSet)
        if not answer.InstanceSet or offset >= answer.TotalCount:
            return


def type_counts(client):
    """GPUs by type, for instances whose own record does not say."""
    answer = client.DescribeZoneInstanceConfigInfos(cvm.DescribeZoneInstanceConfigInfosRequest())
    return {row.InstanceType: row.GpuCount for row in answer.InstanceTypeQuotaSet}


def state(instance):
    if instance.InstanceState == "STOPPED":
        return "stopped" if instance.StopChargingMode == "STOP_CHARGING" else "stopped_billed"
    return STATES.get(instance.InstanceState, "unknown")


def listed(roles):
    for keys in accounts(roles):
        account = account_id(keys)
        for region in region_names(keys):
            client = cvm_client.CvmClient(keys, region, profile())
            counts = type_counts(client)
            for instance in instances(client):
                if not FAMILIES.match(instance.InstanceType) or instance.InstanceState == "LAUNCH_FAILED":
                    continue
                stated = instance.GPUInfo.GPUCount if instance.GPUInfo else None
                yield {
                    "account": account,
                    "region": region,
                    "zone": instance.Placement.Zone,
                    "instance_id": instance.InstanceId,
                    "name": instance.InstanceName,
                    "instance_type": instance.InstanceType,
                    "state": state(instance),
                    "billing_mode": MODES.get(instance.InstanceChargeType, "unknown"),
                    "gpus": stated or counts.get(instance.InstanceType),
                }


ENDPOINT = sys.argv[1].rstrip("/")
print(json.dumps(list(listed(sys.argv[2:]))))
