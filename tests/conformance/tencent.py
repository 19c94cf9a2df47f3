"""Lists the GPU instances of Tencent Cloud with the vendor's own SDK.

Usage: tencent.py ENDPOINT [ROLE_ARN ...]. Prints a JSON array, one object for
each CVM instance, native node of TKE and container instance that has GPUs, in
the words of gpuwatch: of the account of the keys, and of each account whose
role is given. The SDK signs, pages and reads, so whatever this prints is what
it understands of the answers.
"""

import datetime
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
from tencentcloud.svp.v20240125 import models as svp
from tencentcloud.svp.v20240125 import svp_client
from tencentcloud.tke.v20180525 import models as tke
from tencentcloud.tke.v20180525 import tke_client
from tencentcloud.tke.v20220501 import models as nodes
from tencentcloud.tke.v20220501 import tke_client as nodes_client

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

MODES = {
    "POSTPAID_BY_HOUR": "on_demand",
    "SPOTPAID": "spot",
    "PREPAID": "reserved",
    "UNDERWRITE": "reserved",
    "CDHPAID": "reserved",
    "CDCPAID": "reserved",
}

NODE_STATES = {"running": "running", "initializing": "starting"}

POD_STATES = {"Running": "running", "Pending": "starting"}

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


def pages(call, request, rows, total="TotalCount", limit=100):
    """Every row of a listing by offset."""
    offset = 0
    while True:
        request.Offset, request.Limit = offset, limit
        answer = call(request)
        found = getattr(answer, rows) or []
        yield from found
        offset += len(found)
        if not found or offset >= getattr(answer, total):
            return


def instances(client):
    return pages(client.DescribeInstances, cvm.DescribeInstancesRequest(), "InstanceSet")


def native_nodes(keys, region):
    """Nodes of clusters that are no CVM instances."""
    client = tke_client.TkeClient(keys, region, profile())
    members = nodes_client.TkeClient(keys, region, profile())
    for cluster in list(pages(client.DescribeClusters, tke.DescribeClustersRequest(), "Clusters")):
        request = nodes.DescribeClusterInstancesRequest()
        request.ClusterId = cluster.ClusterId
        for node in pages(members.DescribeClusterInstances, request, "InstanceSet"):
            if node.Native and node.Native.MachineType == "Native" and node.Native.GPU:
                yield node


def containers(keys, region):
    client = tke_client.TkeClient(keys, region, profile())
    request = tke.DescribeEKSContainerInstancesRequest()
    for pod in pages(client.DescribeEKSContainerInstances, request, "EksCis"):
        if pod.GpuCount and pod.Status in POD_STATES:
            yield pod


def gpus_of_pod(pod):
    share = re.match(r"^(\d+)/(\d+)\*", pod.GpuType)
    return pod.GpuCount * (int(share[1]) / int(share[2]) if share else 1)


def covered(keys):
    """Ids of the resources that savings plans paid half of yesterday, or more."""
    today = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=8))).date()
    client = svp_client.SvpClient(keys, "ap-guangzhou", profile())
    request = svp.DescribeSavingPlanCoverageRequest()
    request.StartDate = request.EndDate = str(today - datetime.timedelta(days=1))
    request.PeriodType = 1
    rows = pages(client.DescribeSavingPlanCoverage, request, "DetailSet", limit=200)
    return {row.ResourceId for row in rows if row.SpCoverage >= 50}


def type_counts(client):
    """GPUs by type, for instances whose own record does not say."""
    answer = client.DescribeZoneInstanceConfigInfos(cvm.DescribeZoneInstanceConfigInfosRequest())
    return {row.InstanceType: row.GpuCount for row in answer.InstanceTypeQuotaSet}


def state(instance):
    if instance.InstanceState == "STOPPED":
        return "stopped" if instance.StopChargingMode == "STOP_CHARGING" else "stopped_billed"
    return STATES.get(instance.InstanceState, "unknown")


def billing_mode(instance, plans):
    mode = MODES.get(instance.InstanceChargeType, "unknown")
    is_covered = instance.InstanceId in plans and state(instance) == "running"
    return "reserved" if mode == "on_demand" and is_covered else mode


def region_rows(keys, region, plans):
    client = cvm_client.CvmClient(keys, region, profile())
    counts = type_counts(client)
    for instance in instances(client):
        if not FAMILIES.match(instance.InstanceType) or instance.InstanceState == "LAUNCH_FAILED":
            continue
        stated = instance.GPUInfo.GPUCount if instance.GPUInfo else None
        yield {
            "zone": instance.Placement.Zone,
            "instance_id": instance.InstanceId,
            "name": instance.InstanceName,
            "instance_type": instance.InstanceType,
            "state": state(instance),
            "billing_mode": billing_mode(instance, plans),
            "gpus": stated or counts.get(instance.InstanceType),
        }
    for node in native_nodes(keys, region):
        yield {
            "zone": node.Native.Zone,
            "instance_id": node.Native.InstanceId,
            "name": node.Native.DisplayName,
            "instance_type": node.Native.InstanceType,
            "state": NODE_STATES.get(node.InstanceState, "unknown"),
            "billing_mode": MODES.get(node.Native.InstanceChargeType, "unknown"),
            "gpus": node.Native.GPU,
        }
    for pod in containers(keys, region):
        yield {
            "zone": "",
            "instance_id": pod.EksCiId,
            "name": pod.EksCiName,
            "instance_type": "",
            "state": POD_STATES[pod.Status],
            "billing_mode": "unknown",
            "gpus": gpus_of_pod(pod),
        }


def listed(roles):
    for keys in accounts(roles):
        account, plans = account_id(keys), covered(keys)
        for region in region_names(keys):
            for row in region_rows(keys, region, plans):
                yield {"account": account, "region": region, **row}


ENDPOINT = sys.argv[1].rstrip("/")
print(json.dumps(list(listed(sys.argv[2:]))))
