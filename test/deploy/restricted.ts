/** A field of a pod or container, as far as the profile asks for it. */
type SecurityContext = {
  privileged?: boolean
  allowPrivilegeEscalation?: boolean
  runAsNonRoot?: boolean
  runAsUser?: number
  seccompProfile?: { type: string }
  capabilities?: { add?: string[]; drop?: string[] }
  procMount?: string
  seLinuxOptions?: { type?: string; user?: string; role?: string }
  appArmorProfile?: { type: string }
  windowsOptions?: { hostProcess?: boolean }
  sysctls?: { name: string }[]
}
type Probe = { httpGet?: { host?: string }; tcpSocket?: { host?: string } }
type Container = {
  name: string
  securityContext?: SecurityContext
  ports?: { hostPort?: number }[]
  lifecycle?: { preStop?: Probe; postStart?: Probe }
  startupProbe?: Probe
  livenessProbe?: Probe
  readinessProbe?: Probe
}
export type PodSpec = {
  hostNetwork?: boolean
  hostPID?: boolean
  hostIPC?: boolean
  securityContext?: SecurityContext
  containers: Container[]
  initContainers?: Container[]
  ephemeralContainers?: Container[]
  volumes?: ({ name: string } & Record<string, unknown>)[]
}

const allowedVolumes = [
  ...['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'],
]
const seccompTypes = ['RuntimeDefault', 'Localhost']

/**
 * What the profile "restricted" of the Pod Security Standards, with "baseline" below it, does not
 * allow of a pod: a sentence for each control that it breaks
 * (kubernetes.io/docs/concepts/security/pod-security-standards).
 */
export function faultsOfRestricted(pod: PodSpec): string[] {
  const containers = [...pod.containers, ...(pod.initContainers ?? []), ...(pod.ephemeralContainers ?? [])]
  const own = pod.securityContext ?? {}
  const faults: (string | false | undefined)[] = [
    ...(['hostNetwork', 'hostPID', 'hostIPC'] as const).map((field) => pod[field] && field),
    ...(pod.volumes ?? []).flatMap(({ name, ...source }) =>
      Object.keys(source)
        .filter((kind) => !allowedVolumes.includes(kind))
        .map((kind) => `volume ${name} is a ${kind}`),
    ),
    ...faultsOfEither(own, 'pod'),
    ...(own.sysctls ?? []).map(({ name }) => `sysctl ${name}`),
    ...containers.flatMap((each) => faultsOfContainer(each, own)),
  ]
  return faults.filter((fault): fault is string => typeof fault === 'string')
}

/** Fields that a pod and a container may both set. */
function faultsOfEither(context: SecurityContext, where: string): (string | false | undefined)[] {
  const { seLinuxOptions: linux, appArmorProfile } = context
  return [
    context.runAsUser === 0 && `${where} runs as user 0`,
    context.runAsNonRoot === false && `${where} may run as root`,
    context.windowsOptions?.hostProcess && `${where} is a process of the host`,
    context.seccompProfile !== undefined &&
      !seccompTypes.includes(context.seccompProfile.type) &&
      `${where} has seccomp ${context.seccompProfile.type}`,
    appArmorProfile !== undefined && !seccompTypes.includes(appArmorProfile.type) && `${where} has AppArmor off`,
    (linux?.user !== undefined || linux?.role !== undefined || linux?.type !== undefined) && `${where} sets SELinux`,
  ]
}

function faultsOfContainer(container: Container, pod: SecurityContext): (string | false | undefined)[] {
  const { name, securityContext: own = {}, ports = [], lifecycle } = container
  const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe, lifecycle?.preStop]
  return [
    ...faultsOfEither(own, name),
    own.privileged && `${name} is privileged`,
    own.allowPrivilegeEscalation !== false && `${name} may gain rights`,
    (own.runAsNonRoot ?? pod.runAsNonRoot) !== true && `${name} does not say that it is not root`,
    (own.seccompProfile ?? pod.seccompProfile) === undefined && `${name} has no seccomp profile`,
    !own.capabilities?.drop?.includes('ALL') && `${name} keeps capabilities`,
    ...(own.capabilities?.add ?? []).map((each) => each !== 'NET_BIND_SERVICE' && `${name} adds ${each}`),
    own.procMount !== undefined && own.procMount !== 'Default' && `${name} mounts /proc otherwise`,
    ...ports.map(({ hostPort }) => hostPort !== undefined && hostPort !== 0 && `${name} takes a port of the host`),
    ...[...probes, lifecycle?.postStart].map(
      (probe) => (probe?.httpGet?.host ?? probe?.tcpSocket?.host) !== undefined && `a probe of ${name} names a host`,
    ),
  ]
}
