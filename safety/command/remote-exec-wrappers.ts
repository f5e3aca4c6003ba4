import { findQueryProblem, holdsLanguage } from '../query/request.ts'
import { harmlessPaths } from './path-index.ts'
import type { Wrapper } from './wrappers.ts'

/**
 * Checks names and addresses that leave this machine: they may only go to a host that was looked
 * up.
 */

const local: ReadonlySet<string> = new Set([
  'localhost',
  '127.0.0.1',
  '::1',
  'localhost.localdomain',
  'ip6-localhost',
  // The API server of the local cluster: a fixed name carries no data out.
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
])

/** Whether a host is known, or is this machine. */
export function isKnownHost(host: string, known: ReadonlySet<string>): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  return local.has(name) || known.has(name)
}

/** Reads `user@host`, `host:port` and plain `host`. */
export function hostOf(text: string): string | null {
  const found = /^(?:[a-z_][a-z0-9_.-]*@)?(\[[0-9a-f:]+\]|[a-z0-9._-]+|[0-9a-f]*:[0-9a-f:]+)(?::\d{1,5})?$/i.exec(text)
  // Refuses a leading dash, which would make it an option.
  return found && !found[1]!.startsWith('-') ? found[1]! : null
}

/** Matches names and addresses that give a machine's credentials to any process on it. */
const metadata =
  /^(?:169\.254\.169\.25[34]|169\.254\.170\.2|100\.100\.100\.200|fd00:ec2::2?54|metadata(?:\.google\.internal)?|instance-data(?:\.ec2\.internal)?)$/i

export const isMetadata = (host: string): boolean => metadata.test(host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, ''))

/** The host of an address, and the request to it. */
type RemoteAddress = { host: string; target: string }

/**
 * Splits an address as every program does: without user, backslash, blank, or braces, which some
 * clients expand into many requests. Without a scheme curl guesses one from the host's name, so a
 * name of another protocol is not an HTTP host.
 */
export function addressOf(text: string): RemoteAddress | null {
  const found = /^(?:https?:\/\/)?(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?((?:[/?#][^\s\\{}<>"`^|]*)?)$/i.exec(text)
  if (!found || found[1]!.startsWith('-')) return null
  if (!/^https?:/i.test(text) && /^(?:ftp|dict|ldap|imap|smtp|pop3)\./i.test(text)) return null
  return { host: found[1]!, target: found[2]!.replace(/#.*$/, '') }
}

/** Requests to a web server that only read, by path and query. */

type Rule = { segments: readonly string[]; query: ReadonlySet<string> }

const exact = new Map<string, Set<string>>()
const patterned: Rule[] = []
for (const { paths, query = '' } of harmlessPaths) {
  const names = query.split(/\s+/).filter((name) => name !== '')
  for (const path of paths.trim().split(/\s+/)) {
    if (path.includes('*')) patterned.push({ segments: path.split('/'), query: new Set(names) })
    else exact.set(path, new Set([...(exact.get(path) ?? []), ...names]))
  }
}

/** Most characters of a query. A longer query may exceed the limit of its language's inspector. */
const maxQueryCharacters = 500
const maxLanguageCharacters = 6_000

/**
 * Returns why a request may do more than read; null if it only reads. `target`: the part after host
 * and port, with or without a query.
 */
export function findRequestProblem(target: string): string | null {
  const unknown = 'is not a known read-only request'
  const asked = target === '' ? '/' : target
  const mark = asked.indexOf('?')
  const path = (mark < 0 ? asked : asked.slice(0, mark)).replace(/^\?/, '/')
  const query = mark < 0 || exact.has(asked) ? '' : asked.slice(mark + 1)
  if (exact.has(asked)) return findQueryProblem(path, query)
  // Refuses an escape, a parameter or a dot in a path, about which servers disagree.
  if (!/^\/[\w./:@~+-]*$/.test(path) || /\/\.{1,2}(?:\/|$)|\/\//.test(path)) return unknown
  if (query.length > (holdsLanguage(path) ? maxLanguageCharacters : maxQueryCharacters)) return 'is too long a query'
  const names = query.split('&').filter((part) => part !== '')
  const isKnown = allowed(path).some((known) =>
    names.every((part) => known.has(part.replace(/=.*$/s, '').replace(/%5B%5D$/i, '[]'))),
  )
  return isKnown ? findQueryProblem(path, query) : unknown
}

function allowed(path: string): ReadonlySet<string>[] {
  const found = exact.get(path)
  if (found) return [found]
  const segments = path.split('/')
  return patterned
    .filter((rule) => rule.segments.length === segments.length)
    .filter((rule) =>
      rule.segments.every(
        (name, at) =>
          name === segments[at] ||
          (name === '*' && /^[\w.,:@-]+$/.test(segments[at]!) && !/^[_.-]/.test(segments[at]!)),
      ),
    )
    .map(({ query }) => query)
}

const containerExec: Wrapper = {
  flags: '-i -d --interactive --detach --privileged -T --no-TTY -l --latest --sync -s',
  values: '-u -w -e --user --workdir --env --env-file --detach-keys --index --preserve-fds --cidfile',
  tty: '-t -i --tty --interactive',
  alters: '-d --detach --privileged -l --latest -e --env --env-file -w --workdir -u --user',
  before: 1,
  rest: 'argv',
  adds: 'place',
  place: 'name',
}

const containerRun: Wrapper = {
  flags: `-d -i -t -P --rm --detach --interactive --tty --privileged --init --read-only --publish-all --no-healthcheck
    --oom-kill-disable --quiet -q --replace --service-ports`,
  values: `-v --volume --mount -e --env --env-file --name -p --publish --network --net --network-alias --pid --ipc --uts -u --user
    -w --workdir --entrypoint -h --hostname --cap-add --cap-drop --security-opt --device -m --memory --memory-swap --cpus -c
    --cpu-shares --cpuset-cpus --restart -l --label --label-file --add-host --dns --dns-search --gpus --ulimit --tmpfs --userns
    --cgroupns --cgroup-parent --platform --pull --log-driver --log-opt --shm-size --volumes-from --ip --mac-address --runtime
    --stop-signal --stop-timeout --sysctl --isolation --group-add --cidfile --annotation --attach -a --link --expose`,
  before: 1,
  rest: 'argv',
}

const compose: Wrapper = {
  values: '-f --file -p --project-name --profile --project-directory --env-file --ansi --parallel --progress',
  flags: '--compatibility --dry-run --all-resources',
  // Options that name files which were not checked; only files of the current place are checked.
  alters: '-f --file --project-directory --env-file',
  commands: { exec: containerExec, run: containerRun },
}

const docker: Wrapper = {
  flags: '-D --debug --tls --tlsverify --remote -r --syslog',
  values: '-c --context --config -H --host -l --log-level --url --identity --connection --namespace -n --address -a',
  alters: '-c --context --config -H --host --url --connection --remote -r --address -a',
  commands: {
    exec: containerExec,
    run: containerRun,
    create: containerRun,
    container: { commands: { exec: containerExec, run: containerRun, create: containerRun } },
    compose,
  },
}

const kubectlExec: Wrapper = {
  flags: '-i -q --stdin --quiet',
  values: '-c --container -f --filename --pod-running-timeout --image --target --profile --copy-to --share-processes',
  tty: '-t -i --tty --stdin',
  alters: '-f --filename --image --copy-to',
  before: 1,
  interspersed: true,
  rest: 'argv',
  adds: 'place',
  place: 'name',
}

const kubectl: Wrapper = {
  flags: '--insecure-skip-tls-verify --warnings-as-errors --match-server-version',
  values: `-n --namespace --context --cluster --kubeconfig --user --as --as-group --request-timeout -s --server --token -v
    --certificate-authority --client-certificate --client-key --cache-dir --tls-server-name`,
  alters: '--kubeconfig --as --as-group -s --server --token --cache-dir --insecure-skip-tls-verify',
  commands: { exec: kubectlExec, debug: { ...kubectlExec, adds: undefined }, run: { ...kubectlExec, adds: undefined } },
}

const ssh: Wrapper = {
  flags: '-4 -6 -C -n -q -T -x -a -A -f -g -G -k -K -M -N -s -t -tt -v -V -X -Y -y',
  values: '-p -l -o -i -F -J -L -R -D -W -b -B -c -E -e -I -m -O -P -Q -S -w',
  alters: '-l -A -f -g -k -K -M -N -s -X -Y -o -i -F -J -L -R -D -W -b -B -E -I -O -S -w',
  // Values of -o that only set waiting times and verbosity.
  inertValues:
    '^(?:ConnectTimeout|ConnectionAttempts|ServerAliveInterval|ServerAliveCountMax)=\\d+$|^BatchMode=yes$|^LogLevel=(?:ERROR|QUIET)$',
  tty: '-t -tt',
  before: 1,
  interspersed: true,
  rest: 'shell',
  adds: 'place',
  place: 'host',
}

const nameThenArgv: Wrapper = {
  flags: '-T --force-noninteractive --force-interactive --pass-stdin --clear-env --keep-env -i -t -s -q',
  values:
    '-n --name --cwd --env --mode --user --group --timeout --synchronous -u -e --exec-id --keep-var --set-var -v -P --rcfile',
  alters:
    '--pass-stdin --cwd --env -e --mode --user --group -u --set-var --keep-var -v -P --rcfile --clear-env --keep-env -s',
  before: 1,
  interspersed: true,
  rest: 'argv',
}

/** Programs that run a command in a container or a guest, or on another host. */
export const elsewhere: Readonly<Record<string, Wrapper>> = {
  ssh,
  rsh: { ...ssh, adds: undefined },
  mosh: { ...ssh, adds: undefined },
  sshpass: { flags: '-e -v', values: '-p -f -d -P', rest: 'argv' },
  pdsh: { flags: '-S -N -b', values: '-w -x -l -f -u -R -g', rest: 'shell' },
  clush: { flags: '-a -b -B -q -S', values: '-w -x -g -l -f -u', rest: 'shell' },
  salt: { flags: '-v -b', values: '-t -b --out', before: 2, rest: 'shell' },
  ansible: {
    flags: '-b --become -K -k -v -C',
    values: '-m -i -u -f -e -l --become-user',
    scripts: '-a --args',
    before: 1,
    interspersed: true,
    rest: 'none',
  },
  docker,
  podman: docker,
  nerdctl: docker,
  'docker-compose': compose,
  'podman-compose': compose,
  kubectl,
  oc: {
    ...kubectl,
    commands: { ...kubectl.commands, rsh: { ...kubectlExec, flags: '-T --no-tty', interspersed: undefined } },
  },
  k3s: { commands: { kubectl } },
  microk8s: { commands: { kubectl } },
  crictl: {
    values: '-r -i -c -t --runtime-endpoint --image-endpoint --config --timeout',
    alters: '-c --config -r --runtime-endpoint --image-endpoint',
    inertValues:
      '^(?:unix://)?/(?:var/)?run/(?:containerd/containerd|k3s/containerd/containerd|crio/crio|cri-dockerd|dockershim)\\.sock$',
    commands: { exec: containerExec },
  },
  lxc: { commands: { exec: nameThenArgv } },
  incus: { commands: { exec: nameThenArgv } },
  'lxc-attach': { ...nameThenArgv, before: 0 },
  pct: { commands: { exec: { ...nameThenArgv, adds: 'place', place: 'name' } } },
  qm: { commands: { guest: { commands: { exec: nameThenArgv } } } },
  ctr: {
    values: '-n -a --namespace',
    commands: { task: { commands: { exec: nameThenArgv } }, tasks: { commands: { exec: nameThenArgv } } },
  },
  machinectl: { values: '-M --uid --setenv', commands: { shell: { before: 1, rest: 'argv' } } },
}
