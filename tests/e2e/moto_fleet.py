"""Serves a moto fleet and prints what boto3 itself sees of it.

Starts moto's server on a free loopback port, launches instances through boto3,
lists them back with boto3's own paginators, prints one line of JSON
(`url`, `instances`, `gpus`) and serves until standard input closes.
"""

import json
import logging
import os
import sys

for name, value in {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
}.items():
    os.environ.setdefault(name, value)

import boto3  # noqa: E402  (after the environment it reads)
from botocore.config import Config  # noqa: E402
from moto.server import ThreadedMotoServer  # noqa: E402

IMAGE = "ami-12c6146b"
GPU_TYPES = ["g4dn.xlarge", "g5.12xlarge", "g6f.large", "p4d.24xlarge", "trn1.32xlarge", "inf2.xlarge", "g6.48xlarge"]
CPU_TYPES = ["m5.large", "c7i.xlarge", "t3.micro"]
REGIONS = {"us-east-1": 1300, "us-west-2": 30, "eu-central-1": 20, "ap-northeast-1": 0}
STATES = ["pending", "running", "stopping", "stopped"]


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    config = Config(retries={"max_attempts": 2})

    def client(service, region):
        return boto3.client(service, region_name=region, endpoint_url=url, config=config)

    instances, types = [], set()
    for region, count in REGIONS.items():
        ec2 = client("ec2", region)
        launched = [launch(ec2, number, count) for number in range(count)]
        if count:
            ec2.stop_instances(InstanceIds=[i for n, i in enumerate(launched) if n % 10 == 7 and n % 40 != 9])
            ec2.terminate_instances(InstanceIds=[i for n, i in enumerate(launched) if n % 40 == 9])
        for instance in listing(ec2):
            instances.append(instance | {"region": region})
            types.add(instance["type"])

    print(json.dumps({"url": url, "instances": instances, "gpus": gpus(client("ec2", "us-east-1"), types)}), flush=True)
    sys.stdin.read()
    server.stop()


def launch(ec2, number, count):
    """One RunInstances call per instance: moto pages by reservation."""
    kind = CPU_TYPES[number % 3] if number % 20 == 4 else GPU_TYPES[number % len(GPU_TYPES)]
    tags = [{"Key": "Name", "Value": f"node-{number} 训练\"{count}\""}, {"Key": "team", "Value": f"team-{number % 4}"}]
    options = {"InstanceMarketOptions": {"MarketType": "spot"}} if number % 6 == 1 else {}
    answer = ec2.run_instances(
        ImageId=IMAGE,
        InstanceType=kind,
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        **options,
    )
    return answer["Instances"][0]["InstanceId"]


def listing(ec2):
    """Every instance that is not terminated, CPU machines included."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-state-name", "Values": STATES}]
    )
    for page in pages:
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
                yield {
                    "account": reservation["OwnerId"],
                    "id": instance["InstanceId"],
                    "type": instance["InstanceType"],
                    "state": instance["State"]["Name"],
                    "lifecycle": instance.get("InstanceLifecycle", ""),
                    "zone": instance["Placement"]["AvailabilityZone"],
                    "launched": int(instance["LaunchTime"].timestamp()),
                    "name": tags.get("Name", ""),
                    "team": tags.get("team", ""),
                }


def gpus(ec2, types):
    """Accelerators per type by DescribeInstanceTypes; CPU types are left out."""
    answer = ec2.describe_instance_types(InstanceTypes=sorted(types))
    found = {}
    for info in answer["InstanceTypes"]:
        devices = info.get("GpuInfo", {}).get("Gpus") or info.get("NeuronInfo", {}).get("NeuronDevices") or []
        for device in devices:
            cards = device.get("LogicalGpuCount", device["Count"]) * device.get("GpuPartitionSize", 1.0)
            found[info["InstanceType"]] = found.get(info["InstanceType"], 0) + cards
    return found


if __name__ == "__main__":
    main()
