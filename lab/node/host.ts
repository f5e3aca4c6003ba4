import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { announce, readSpecAndSettle } from './program.ts'

/**
 * Runs a host: its VMs are child processes in its process group, so that they die with it.
 *
 *   GET    /vms                → [{ id, pid }]
 *   POST   /vms/{id}  { from } → starts it here; with `from`, as a copy that waits for that host's release
 *   DELETE /vms/{id}           → ends it and releases its storage
 */
// Reads the program before privileges are dropped, because the file may be unreadable afterwards.
const program = readFileSync(join(import.meta.dirname, 'vm.sh'), 'utf8')
const spec = readSpecAndSettle<{ storage: string }>()

const vms = new Map<string, ChildProcess>()

// Removes the beats of VMs that ended together with this host at a hard stop.
for (const vm of readdirSync(spec.storage)) letGo(vm)

function beatOf(vm: string): string {
  return join(spec.storage, vm, `running.${spec.id}`)
}

/**
 * Removes a VM's beat from the storage. If the storage is not writable, the beat remains, so that
 * nobody assumes that this host has released the VM.
 */
function letGo(vm: string): void {
  try {
    rmSync(beatOf(vm), { force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

function start(id: string, from: string): void {
  // Passes the program on stdin, so that a list of processes shows the VM and its host instead of
  // the program's text.
  const vm = spawn('/bin/sh', ['-s', id, spec.id, from, spec.storage], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: '/usr/bin:/bin' },
  })
  vm.stdin.on('error', () => {})
  vm.stdin.end(program)
  vms.set(id, vm)
  vm.once('exit', () => {
    if (vms.get(id) === vm) vms.delete(id)
  })
}

async function stop(id: string): Promise<void> {
  const vm = vms.get(id)
  if (vm && vm.exitCode === null && vm.signalCode === null) {
    const exited = once(vm, 'exit')
    vm.kill('SIGKILL')
    await exited
  }
  letGo(id)
}

async function bodyOf(request: IncomingMessage): Promise<{ from?: string }> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text ? (JSON.parse(text) as { from?: string }) : {}
}

announce(
  createServer(async (request, response) => {
    const id = /^\/vms\/(vm-\d+)$/.exec(request.url!)?.[1]
    if (request.method === 'GET' && request.url === '/vms') {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify([...vms].map(([vm, { pid }]) => ({ id: vm, pid }))))
    } else if (id && request.method === 'POST') {
      const { from = '' } = await bodyOf(request)
      if (!vms.has(id)) start(id, from)
      response.writeHead(201).end()
    } else if (id && request.method === 'DELETE') {
      await stop(id)
      response.writeHead(204).end()
    } else {
      response.writeHead(404).end()
    }
  }),
)
