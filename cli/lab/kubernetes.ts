import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { clusterRights } from '../../domain/cluster-rights.ts'
import { formatSpan } from '../../domain/format.ts'
import { sourceTest } from '../../domain/source.ts'
import type { LabClient } from '../../lab/client.ts'
import { clusterSource } from '../../lab/kubernetes/faults.ts'
import { buildScript, whatClusterLacks } from '../../lab/kubernetes/programs.ts'
import type { ApiClient } from '../api.ts'
import { getStateDir } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert, print, printJson, printNote } from '../ui/terminal.ts'

/** Milliseconds between messages about the progress of the build. */
const tellEveryMs = 60_000

/** Builds the programs that the lab lacks, starts the lab's cluster, and prints its address. */
export async function showKubernetes(lab: LabClient, { json }: { json?: boolean }): Promise<void> {
  const { url, kubeconfig, nodes } = await startKubernetes(lab, { isQuiet: json === true })
  if (json) return printJson({ url, kubeconfig, nodes })
  print(`Kubernetes runs with ${nodes.join(' and ')}.\n\n  API         ${url}\n  kubeconfig  ${inert(kubeconfig)}`)
  print(`\nList its pods:\n  kubectl --kubeconfig ${inert(kubeconfig)} get pods --all-namespaces`)
}

async function startKubernetes(
  lab: LabClient,
  { isQuiet }: { isQuiet: boolean },
): Promise<Awaited<ReturnType<LabClient['openKubernetes']>>> {
  await buildWhatLacks()
  if (!isQuiet)
    printNote('Kubernetes starts with two nodes and a demonstration shop. The first start takes half a minute.')
  return await lab.openKubernetes()
}

/**
 * Starts the cluster, gives an account the rights of a source, and adds the cluster as a source
 * with the account's token.
 */
export async function connectKubernetes(api: ApiClient, lab: LabClient, options: { isQuiet: boolean }): Promise<void> {
  const { url } = await startKubernetes(lab, options)
  const files = await lab.giveClusterRights(clusterRights())
  const directory = join(getStateDir('lab'), 'sources')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const copy = (from: string, name: string): string => {
    const file = join(directory, `${clusterSource}-${name}`)
    copyFileSync(from, file)
    return file
  }
  const token = copy(files.token, 'token')
  // Sets the address again, because the API server uses a new port at each start of the lab. The
  // digest of the token shows that the caller may set the address.
  const credentialSha256 = createHash('sha256').update(readFileSync(token)).digest('hex')
  await api.put(`/api/v1/sources/${clusterSource}`, {
    kind: 'kubernetes',
    url,
    credential: `file:${token}`,
    caFile: copy(files.authority, 'ca.crt'),
    credentialSha256,
  })
  const { ok, detail } = sourceTest.loose().parse(await api.post(`/api/v1/sources/${clusterSource}/test`))
  if (!ok) throw new CommandFailed('error', `The cluster does not answer as a source: ${inert(detail)}`)
}

/**
 * Builds the programs that the cluster lacks, once per checkout. Throws CommandFailed with the
 * remedy if the build fails.
 */
async function buildWhatLacks(): Promise<void> {
  const { toBuild, problems } = whatClusterLacks()
  if (problems.length > 0) throw new CommandFailed('error', problems.map((each) => `  ${each}`).join('\n'))
  if (toBuild.length === 0) return
  printNote(
    `No ${toBuild.join(', no ')} here. Nightshift builds them once from the Go modules of Kubernetes into .cache/kubernetes, which takes about ten minutes on two cores. To use a folder that has them, set KUBE_BIN.`,
  )
  const began = Date.now()
  const build = spawn(buildScript, { stdio: ['ignore', 'pipe', 'pipe'] })
  let doing = 'the build fetches the modules'
  const telling = setInterval(() => printNote(`${formatSpan(Date.now() - began)}: ${doing}.`), tellEveryMs)
  let trouble = ''
  build.stderr.on('data', (chunk) => {
    trouble = `${trouble}${chunk}`.slice(-2_000)
  })
  createInterface({ input: build.stdout }).on('line', (line) => {
    if (!/^(?:building|built) /.test(line)) return
    doing = line
    printNote(line)
  })
  const code = await new Promise((resolve, reject) => build.once('error', reject).once('close', resolve))
  clearInterval(telling)
  if (code !== 0) throw new CommandFailed('error', `The build ended with code ${code}: ${inert(trouble.trim())}`)
}
