/**
 * Reads output templates: Go's (`docker inspect --format`), and those of `kubectl -o`. A template
 * may print any field, including environment and secrets, so each path must lead to a field that is
 * known to hold neither.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

type Fields = { shown: ReadonlySet<string>; hidden: ReadonlySet<string> }

/**
 * Fields of containers, volumes and services, with everything below them: docker-inspect(1),
 * podman-inspect(1).
 */
const container: Fields = {
  shown: words(`
    State Status Running Paused Restarting OOMKilled Dead Pid ExitCode Error StartedAt FinishedAt Health Id ID Name Names Created CreatedAt
    Image ImageName ImageID RestartCount Platform Driver Type NetworkSettings Networks Ports IPAddress Gateway MacAddress Mounts Mountpoint
    Source Destination Mode LogPath SizeRw SizeRootFs Size VirtualSize RestartPolicy Memory MemorySwap NanoCpus CpuShares CpuQuota
    CpuPeriod CpusetCpus PidsLimit Ulimits ShmSize NetworkMode PortBindings Binds Privileged ReadonlyRootfs CapAdd CapDrop Hostname User
    WorkingDir ExposedPorts StopSignal StopTimeout Tty Architecture Os RepoTags RepoDigests Replicas UpdateStatus Scope
    EndpointSpec Endpoint Resources pid exitCode startedAt finishedAt createdAt reason Placement GraphDriver HostnamePath ResolvConfPath HostsPath Version UsageData RefCount state message imageRef logPath attempt`),
  hidden: words('Env Environment Args Cmd Entrypoint Labels Annotations Options Secrets Configs Config.Env Data Spec'),
}

/** Fields of Kubernetes' objects, with everything below them. */
const kubernetes: Fields = {
  shown: words(`
    name namespace uid creationTimestamp deletionTimestamp generation observedGeneration resourceVersion finalizers ownerReferences labels
    matchLabels selector nodeName hostIP hostIPs podIP podIPs hostNetwork image imageID imagePullPolicy containerID resources limits requests ports
    replicas readyReplicas availableReplicas updatedReplicas unavailableReplicas currentReplicas desiredNumberScheduled numberReady
    status phase conditions containerStatuses initContainerStatuses restartCount ready started state lastState terminated waiting running
    exitCode reason message type lastTransitionTime lastTimestamp firstTimestamp eventTime count involvedObject startTime startedAt finishedAt
    completionTime succeeded failed active restartPolicy serviceAccountName serviceAccount nodeSelector affinity tolerations taints
    unschedulable capacity allocatable nodeInfo addresses podCIDR providerID priorityClassName priority schedulerName strategy
    updateStrategy minReadySeconds progressDeadlineSeconds revisionHistoryLimit clusterIP clusterIPs externalIPs loadBalancer loadBalancerIP
    externalTrafficPolicy sessionAffinity subsets endpoints host hosts paths storageClassName accessModes volumeName volumeMode
    claimRef persistentVolumeReclaimPolicy minReplicas maxReplicas metrics scaleTargetRef schedule suspend parallelism completions
    backoffLimit periodSeconds timeoutSeconds failureThreshold initialDelaySeconds successThreshold terminationGracePeriodSeconds qosClass nominatedNodeName kind apiVersion version
    currentRevision updateRevision gitVersion items.length`),
  hidden: words(
    'env envFrom value valueFrom data stringData binaryData annotations command args token password secret httpHeaders exec',
  ),
}

/** Columns of lists of containers, images and volumes, docker-ps(1). Labels are free text. */
const listed: Fields = {
  shown: words(`
    ID Image Command CreatedAt CreatedSince RunningFor Ports State Status Size Names Name Networks Mounts LocalVolumes Repository Tag Digest
    Driver Scope Mountpoint Replicas Mode Service Node DesiredState CurrentState Error Pod PodName Pid Hostname Availability ManagerStatus EngineVersion`),
  hidden: words('Labels Label Spec Options'),
}

/**
 * Fields of the journal that may be shown: place, time and message. Other fields hold command lines
 * and environments.
 */
const journal = words(`
  MESSAGE PRIORITY SYSLOG_IDENTIFIER SYSLOG_FACILITY SYSLOG_PID _PID _UID _GID _COMM _EXE _SYSTEMD_UNIT _SYSTEMD_USER_UNIT _SYSTEMD_SLICE
  _SYSTEMD_CGROUP _HOSTNAME _BOOT_ID _MACHINE_ID _TRANSPORT UNIT USER_UNIT CODE_FILE CODE_LINE CODE_FUNC MESSAGE_ID ERRNO
  __REALTIME_TIMESTAMP __MONOTONIC_TIMESTAMP COREDUMP_UNIT COREDUMP_PID COREDUMP_SIGNAL COREDUMP_SIGNAL_NAME COREDUMP_EXE COREDUMP_COMM
  COREDUMP_TIMESTAMP COREDUMP_UID`)

export function inspectJournalFields(text: string): string | null {
  const hidden = text.split(',').find((field) => !journal.has(field))
  return hidden === undefined ? null : `${hidden} is not a known field without secrets`
}

/**
 * Whether a path leads through a field that is shown with everything below it, and through no
 * hidden field.
 */
function isShown(path: readonly string[], { shown, hidden }: Fields): boolean {
  return path.some((field) => shown.has(field)) && !path.some((field) => hidden.has(field))
}

/** Reads `table {{.Names}}`, and names of output formats that select no fields. */
export function inspectListTemplate(text: string): string | null {
  if (!text.includes('{{')) return text === 'table' ? null : `${text} prints everything`
  return inspectGo(text.replace(/^table /, ''), listed)
}

export const inspectContainerTemplate = (text: string): string | null =>
  text.includes('{{') ? inspectGo(text, container) : `${text} prints everything`

/** Reads the argument of `kubectl get -o`. */
export function inspectKubernetesOutput(text: string): string | null {
  const equals = text.indexOf('=')
  const kind = equals < 0 ? text : text.slice(0, equals)
  const template = text.slice(equals + 1)
  switch (kind) {
    case 'wide':
    case 'name':
    // Accepts `json` and `yaml`, because the grammar lists the kinds that may be shown as a whole.
    case 'json':
    case 'yaml':
      return equals < 0 ? null : `${kind} takes no template`
    case 'jsonpath':
    case 'jsonpath-as-json':
      return inspectJsonPath(template)
    case 'go-template':
      return inspectGo(template, kubernetes)
    case 'custom-columns':
      return inspectColumns(template)
    default:
      return `${kind} is not a known output without secrets`
  }
}

type Block = { ranges: boolean; isShown: boolean; before: boolean }

/** Reads Go's text/template: fields, variables, `range`, `with`, `if` and formatting functions. */
function inspectGo(text: string, fields: Fields): string | null {
  const blocks: Block[] = []
  const variables = new Set<string>()
  /** Whether the dot, the current value, is below a shown field. */
  let dot = false
  for (const [, action = ''] of text.matchAll(/\{\{-?\s*((?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`}]|\}(?!\}))*?)\s*-?\}\}/g)) {
    const bare = action.replace(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, ' ').trim()
    const keyword = /^(?:range|with|if|else if|else with|else|end)\b/.exec(bare)?.[0] ?? ''
    if (/^(?:template|define|block|break|continue)\b/.test(bare)) return `${bare} is not supported`
    if (keyword === 'end') {
      const closed = blocks.pop()
      if (!closed) return 'an end without a beginning'
      dot = closed.before
      continue
    }
    if (keyword.startsWith('else')) dot = blocks.at(-1)?.before ?? false
    const said = readAction(bare.slice(keyword.length), dot, variables, fields)
    const iterates = keyword === 'range' || keyword.endsWith('with')
    if (said.why && !iterates) return said.why
    if (iterates && said.why && !said.isPath) return said.why
    if (keyword && !keyword.startsWith('else')) blocks.push({ ranges: iterates, isShown: !said.why, before: dot })
    if (iterates) dot = !said.why
    if (said.declared && !said.why) for (const name of said.declared) variables.add(name)
  }
  return blocks.length > 0 || /\{\{/.test(text.replace(/\{\{(?:"(?:[^"\\]|\\.)*"|`[^`]*`|[^"`])*?\}\}/g, ''))
    ? 'a template that does not end'
    : null
}

const formatting = words(
  'json join len print printf println upper lower title split index eq ne lt le gt ge and or not html js truncate pad table slice',
)

type Action = { why: string | null; isPath: boolean; declared: readonly string[] | null }

function readAction(text: string, dot: boolean, variables: ReadonlySet<string>, fields: Fields): Action {
  const declaration = /^\s*(\$\w+(?:\s*,\s*\$\w+)?)\s*:?=/.exec(text)
  const declared = declaration ? declaration[1]!.split(',').map((name) => name.trim()) : null
  const rest = declaration ? text.slice(declaration[0].length) : text
  let why: string | null = null
  const tokens = rest.match(/\$?\w*(?:\.\w+)+|\$\w*|\.|-?\d+|\w+|[()|,]|\S/g) ?? []
  for (const token of tokens) {
    if (/^(?:-?\d+|[()|,])$/.test(token) || formatting.has(token) || /^(?:true|false|nil)$/.test(token)) continue
    if (token === '.') why ??= dot ? null : 'prints everything'
    else if (token.startsWith('.')) why ??= isBelow(token, dot, fields)
    else if (token.startsWith('$')) {
      const name = /^\$\w*/.exec(token)![0]
      if (!variables.has(name)) why ??= isBelow(token.slice(name.length), false, fields)
      else why ??= isBelow(token.slice(name.length), true, fields)
    } else return { why: `${token} is not supported`, isPath: false, declared }
  }
  return { why, isPath: tokens.length === 1, declared }
}

function isBelow(path: string, dot: boolean, fields: Fields): string | null {
  const segments = path.split('.').filter((field) => field !== '')
  if (segments.length === 0) return dot ? null : 'prints everything'
  if (dot) return segments.some((field) => fields.hidden.has(field)) ? `${path} may hold a secret` : null
  return isShown(segments, fields) ? null : `${path} is not a known field without secrets`
}

/** Reads `NAME:.metadata.name,IMAGE:.spec.containers[*].image`. */
function inspectColumns(text: string): string | null {
  for (const column of text.split(/,(?![^[]*\])/)) {
    const path = column.slice(column.indexOf(':') + 1)
    if (!column.includes(':')) return `${column} is not a column`
    const why = pathProblem(path)
    if (why) return why
  }
  return null
}

/** Reads `{range .items[*]}{.metadata.name}{"\n"}{end}`. */
function inspectJsonPath(text: string): string | null {
  const template = text.includes('{') ? text : `{${text}}`
  const rest = template.replace(/\{((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^{}"'])*)\}/g, '')
  if (/[{}]/.test(rest)) return 'a template that cannot be read'
  for (const [, action = ''] of template.matchAll(/\{((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^{}"'])*)\}/g)) {
    const said = action.trim()
    if (said === 'end' || /^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')$/.test(said)) continue
    // Skips a path under `range`, which is not printed itself.
    if (/^range\s+[$@]?[.\w[\]*\\]+(?:\[\?\(.*\)\])?(?:\.[\w.]+)*$/.test(said)) continue
    const why = pathProblem(said)
    if (why) return why
  }
  return null
}

/**
 * Checks a path. Filters are removed, because they choose and print nothing; quoted names in
 * brackets become ordinary fields.
 */
function pathProblem(path: string): string | null {
  const plain = path
    .trim()
    .replace(/\[\?\([^()]*(?:\([^()]*\))?[^()]*\)\]/g, '')
    .replace(/\\\./g, '_')
    .replace(/\[(?:\*|-?\d*(?::-?\d*){0,2})\]/g, '')
    .replace(/\['([\w.-]+)'\]/g, '.$1')
  if (!/^[$@]?(?:\.{1,2}[\w/-]+)+$/.test(plain)) return `${path} is not a path that can be read`
  const fields = plain
    .replace(/^[$@]/, '')
    .split('.')
    .filter((field) => field !== '')
  return isShown(fields, kubernetes) ? null : `${path} is not a known field without secrets`
}
