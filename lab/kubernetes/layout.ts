import { stringify } from 'yaml'
import type { ClusterCertificate } from './certificates.ts'
import { clusterProgram, networkPlugins } from './programs.ts'

/** The nodes of the cluster, each with its network and its disk. */
export const nodeNames = ['node-1', 'node-2'] as const
type NodeName = (typeof nodeNames)[number]

/** The path under which the cluster's own programs see the cluster's directory. */
const place = '/run/cluster'

/** The size of a node's disk in MiB, small enough for a fault to really fill the disk. */
const nodeDiskMib = 192

const networkOf = (node: NodeName) => {
  const n = nodeNames.indexOf(node) + 1
  return { bridge: `lab${n}`, address: `10.88.${n}.1`, subnet: `10.88.${n}.0/24`, firstPod: `10.88.${n}.10` }
}
const apiPort = 6443
/** The address of the first node. The lab's API server and webhooks listen there. */
export const controlAddress = networkOf('node-1').address
export const serviceNetwork = '10.96.0.0/16'
/** The address that pods use as their name server. Nothing listens there. */
const nameServer = '10.96.0.10'
export const apiServerNames = {
  names: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  addresses: ['127.0.0.1', controlAddress, '10.96.0.1'],
}

/** A program of the cluster. A program with a `socket` is ready when the socket exists. */
type ClusterProcess = { name: string; program: string; args: string[]; socket?: string }

/** The plan of `lab/node/cluster-inside.ts`, in this order: networks, disks, then programs. */
export type ClusterPlan = {
  place: string
  networks: { bridge: string; address: string }[]
  disks: { path: string; mib: number }[]
  processes: ClusterProcess[]
  /** Sockets of the containerd processes into which images are imported. */
  sockets: string[]
  images: string[]
  tools: { ip: string; ctr: string }
  api: { host: string; port: number }
}

const socketOf = (node: NodeName): string => `/run/${node}-containerd.sock`

/** Archives of the images, which are made before the cluster starts. */
export const imageFiles = ['pause-1.tar', 'shop-1.tar', 'shop-2.tar']

export function clusterPlan(): ClusterPlan {
  const controllers = ['--leader-elect=false', '--authentication-skip-lookup']
  return {
    place,
    networks: nodeNames.map(networkOf),
    disks: nodeNames.map((node) => ({ path: `${place}/${node}/disk`, mib: nodeDiskMib })),
    processes: [
      { name: 'etcd', program: clusterProgram('etcd'), args: etcdArgs },
      { name: 'kube-apiserver', program: clusterProgram('kube-apiserver'), args: apiServerArgs },
      ...nodeNames.map((node) => ({
        name: `containerd-${node}`,
        program: clusterProgram('containerd'),
        args: ['--config', `${place}/${node}/containerd.toml`],
        socket: socketOf(node),
      })),
      {
        name: 'kube-controller-manager',
        program: clusterProgram('kube-controller-manager'),
        args: [
          ...controllers,
          '--kubeconfig=kube-controller-manager.kubeconfig',
          '--service-account-private-key-file=pki/accounts.key',
          '--root-ca-file=pki/ca.crt',
          '--use-service-account-credentials=true',
          '--node-monitor-grace-period=16s',
        ],
      },
      {
        name: 'kube-scheduler',
        program: clusterProgram('kube-scheduler'),
        args: [...controllers, '--kubeconfig=kube-scheduler.kubeconfig'],
      },
      ...nodeNames.map((node) => ({
        name: `kubelet-${node}`,
        program: clusterProgram('kubelet'),
        args: [
          `--config=${place}/${node}/kubelet.yaml`,
          `--kubeconfig=${node}.kubeconfig`,
          `--root-dir=${place}/${node}/disk/kubelet`,
          `--cert-dir=${place}/${node}/pki`,
          `--hostname-override=${node}`,
          `--node-ip=${networkOf(node).address}`,
        ],
      })),
    ],
    sockets: nodeNames.map(socketOf),
    images: imageFiles.map((name) => `images/${name}`),
    tools: { ip: clusterProgram('ip'), ctr: clusterProgram('ctr') },
    api: { host: '127.0.0.1', port: apiPort },
  }
}

const etcdArgs = [
  '--data-dir=/run/etcd',
  '--listen-client-urls=http://127.0.0.1:2379',
  '--advertise-client-urls=http://127.0.0.1:2379',
  '--listen-peer-urls=http://127.0.0.1:2380',
]

const apiServerArgs = [
  '--etcd-servers=http://127.0.0.1:2379',
  '--bind-address=0.0.0.0',
  `--secure-port=${apiPort}`,
  `--advertise-address=${controlAddress}`,
  '--client-ca-file=pki/ca.crt',
  '--tls-cert-file=pki/apiserver.crt',
  '--tls-private-key-file=pki/apiserver.key',
  '--kubelet-client-certificate=pki/apiserver.crt',
  '--kubelet-client-key=pki/apiserver.key',
  '--kubelet-preferred-address-types=InternalIP',
  '--authorization-mode=Node,RBAC',
  `--service-cluster-ip-range=${serviceNetwork}`,
  '--service-account-issuer=https://kubernetes.default.svc',
  '--service-account-key-file=pki/accounts.key',
  '--service-account-signing-key-file=pki/accounts.key',
  // Calls a webhook's service directly at its endpoints, because the cluster has no proxy for
  // service addresses.
  '--enable-aggregator-routing=true',
]

/** Returns the files that a node's programs read, by their path in the cluster's directory. */
export function nodeFiles(node: NodeName, cgroup: string): Record<string, string> {
  const { bridge, subnet, firstPod } = networkOf(node)
  const network = {
    cniVersion: '0.4.0',
    name: `lab-${node}`,
    plugins: [
      {
        type: 'bridge',
        bridge,
        isGateway: true,
        ipMasq: false,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet, rangeStart: firstPod }]],
          routes: [{ dst: '0.0.0.0/0' }],
          dataDir: `/run/${node}-addresses`,
        },
      },
      { type: 'loopback' },
    ],
  }
  return {
    [`${node}/cni/10-lab.conflist`]: JSON.stringify(network),
    [`${node}/containerd.toml`]: containerdSettings(node),
    [`${node}/kubelet.yaml`]: stringify(kubeletSettings(node, cgroup)),
  }
}

/**
 * Settings of a node's containerd. Snapshots are copies, which work on every file system. Plugins
 * are disabled if they use directories outside of the cluster.
 */
const containerdSettings = (node: NodeName): string => `version = 2
root = "${place}/${node}/disk/containerd"
state = "/run/${node}-containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "${socketOf(node)}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "lab.local/pause:1"
  # A container in which this runs may not lower it.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${networkPlugins}"
    conf_dir = "${place}/${node}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${clusterProgram('runc')}"
`

function kubeletSettings(node: NodeName, cgroup: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: `${place}/pki/ca.crt` },
    },
    authorization: { mode: 'AlwaysAllow' },
    address: networkOf(node).address,
    healthzPort: 0,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroup}/${node}`,
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    containerRuntimeEndpoint: `unix://${socketOf(node)}`,
    podLogsDir: `${place}/${node}/disk/pod-logs`,
    volumePluginDir: `${place}/${node}/plugins`,
    clusterDNS: [nameServer],
    clusterDomain: 'cluster.local',
    nodeStatusUpdateFrequency: '4s',
    nodeLeaseDurationSeconds: 10,
    evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '15%', 'imagefs.available': '5%' },
    evictionPressureTransitionPeriod: '20s',
    // Limits the delay between restarts, so that a scenario takes minutes and not an hour.
    crashLoopBackOff: { maxContainerRestartPeriod: '20s' },
    featureGates: { KubeletCrashLoopBackOffMax: true },
    syncFrequency: '5s',
  }
}

/** Builds a kubeconfig that contains its certificates, so that a client needs only this file. */
export function kubeconfig(
  server: string,
  authority: string,
  user: string,
  { certificate, key }: ClusterCertificate,
): string {
  const data = (text: string) => Buffer.from(text).toString('base64')
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server, 'certificate-authority-data': data(authority) } }],
    users: [{ name: user, user: { 'client-certificate-data': data(certificate), 'client-key-data': data(key) } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user } }],
    'current-context': 'lab',
  })
}
