import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createSecureServer, type Server } from 'node:https'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterOrder } from '../kubernetes/drawer.ts'
import type { ClusterPlan } from '../kubernetes/layout.ts'

/**
 * Runs inside the namespaces of a cluster: prepares mounts and networks, and starts the programs.
 */
const plan = JSON.parse(readFileSync('plan.json', 'utf8')) as ClusterPlan
const { place, tools, api } = plan
const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })

makeMounts()
process.chdir(place)
makeNetworks()
const processes = new Map<string, ChildProcess>()
let webhook: Server | null = null
readOrders()
for (const each of plan.processes) await start(each)
importImages(plan.sockets)
relayApi()

/**
 * Mounts memory over directories of the machine, so that the files that programs write there end
 * with the cluster.
 */
function makeMounts(): void {
  run('mount', '--bind', '.', '/mnt')
  run('mount', '-t', 'tmpfs', 'cluster', '/run')
  for (const path of [place, '/run/over/upper', '/run/over/work', '/run/kernel', '/run/tmp'])
    mkdirSync(path, { recursive: true })
  run('mount', '--move', '/mnt', place)
  run('mount', '-t', 'overlay', 'var', '-o', 'lowerdir=/var,upperdir=/run/over/upper,workdir=/run/over/work', '/var')
  for (const { path, mib } of plan.disks) {
    mkdirSync(path, { recursive: true })
    run('mount', '-t', 'tmpfs', '-o', `size=${mib}m`, 'disk', path)
  }
  keepKernel()
  // Shares mounts between containerd and kubelet, which need each other's mounts.
  run('mount', '--make-rshared', '/')
}

/**
 * Mounts copies over kernel settings, with the values that a kubelet wants. Otherwise the kubelet
 * would change the settings of the whole machine.
 */
function keepKernel(): void {
  const wanted = {
    'vm/overcommit_memory': '1',
    'vm/panic_on_oom': '0',
    'kernel/panic': '10',
    'kernel/panic_on_oops': '1',
    'kernel/keys/root_maxkeys': '1000000',
    'kernel/keys/root_maxbytes': '25000000',
  }
  for (const [name, value] of Object.entries(wanted)) {
    const file = join('/run/kernel', name.replaceAll('/', '-'))
    writeFileSync(file, `${value}\n`)
    run('mount', '--bind', file, join('/proc/sys', name))
  }
}

function makeNetworks(): void {
  run(tools.ip, 'link', 'set', 'lo', 'up')
  for (const { bridge, address } of plan.networks) {
    run(tools.ip, 'link', 'add', bridge, 'type', 'bridge')
    run(tools.ip, 'address', 'add', `${address}/24`, 'dev', bridge)
    run(tools.ip, 'link', 'set', bridge, 'up')
  }
  // Adds a default route that leads nowhere, because a kubelet requires one.
  const [first] = plan.networks
  run(tools.ip, 'route', 'add', 'default', 'via', first!.address, 'dev', first!.bridge)
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
}

async function start({ name, program, args, socket }: ClusterPlan['processes'][number]): Promise<void> {
  const log = openSync(join('log', `${name}.log`), 'a', 0o600)
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/run/tmp', TMPDIR: '/run/tmp' }
  const child = spawn(program, args, { stdio: ['ignore', log, log], env })
  processes.set(name, child)
  child.on('exit', (code, signal) => {
    process.stderr.write(`Error: ${name} ended with ${signal ?? `code ${code}`}; see log/${name}.log of the cluster\n`)
    process.exit(1)
  })
  while (socket && !existsSync(socket)) await sleep(50)
}

function importImages(sockets: string[]): void {
  for (const socket of sockets) {
    for (const image of plan.images)
      run(tools.ctr, '--address', socket, '--namespace', 'k8s.io', 'images', 'import', '--snapshotter', 'native', image)
  }
}

/**
 * Relays connections to the API server from a socket in the cluster's directory, which is reachable
 * from outside.
 */
function relayApi(): void {
  const relay = createServer({ allowHalfOpen: true }, (from) => {
    const to = connect({ ...api, allowHalfOpen: true })
    from.pipe(to).pipe(from)
    from.on('error', () => to.destroy())
    to.on('error', () => from.destroy())
  })
  relay.listen('api.sock')
}

/** Reads the lab's orders to the cluster, one per line. */
function readOrders(): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const order = JSON.parse(line) as ClusterOrder
    if (order.kind === 'signal') processes.get(order.process)?.kill(order.signal)
    else if (order.kind === 'images') importImages(plan.sockets)
    else if (order.kind === 'webhook') serveWebhook(order)
    else webhook?.close()
  })
}

/** Serves a webhook that allows everything, but whose certificate has expired. */
function serveWebhook({ certificate, key, host, port }: Extract<ClusterOrder, { kind: 'webhook' }>): void {
  webhook = createSecureServer({ cert: certificate, key }, (request, response) => {
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const { apiVersion, kind, request: asked } = JSON.parse(text)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ apiVersion, kind, response: { uid: asked.uid, allowed: true } }))
    })
  })
  webhook.on('error', (error) => process.stderr.write(`Error: the webhook ended: ${error.message}\n`))
  webhook.listen(port, host)
}
