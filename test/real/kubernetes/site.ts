import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { clusterRights } from '../../../domain/cluster-rights.ts'
import type { Source } from '../../../domain/source.ts'
import { type ClusterApi, connectCluster } from '../../../lab/kubernetes/api.ts'
import { describeLack, whatClusterLacks } from '../../../lab/kubernetes/programs.ts'
import { describeMissing, missingServers } from '../../../lab/monitoring.ts'
import { forgetSource, newSourceStates } from '../../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../../sources/kinds.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { type RunningLab, runLab } from '../../support/running-lab.ts'

/**
 * The cluster of the lab as a source of Nightshift: with the rights that are printed, and no
 * others.
 */

const servers = missingServers()
export const lacking = [
  ...(servers.length > 0 ? [describeMissing(servers)] : []),
  ...describeLack(whatClusterLacks()),
].join('; ')

export type RealCluster = Awaited<ReturnType<typeof startRealCluster>>

// biome-ignore lint/suspicious/noExplicitAny: a manifest has the shape of its kind
type Manifest = any

export async function startRealCluster() {
  const place = temporaryDirectory()
  const lab: RunningLab = await runLab(join(place.path, 'lab'))
  const { url, kubeconfig } = await lab.control.openKubernetes()
  const admin = readFileSync(kubeconfig, 'utf8')
  const api = connectCluster(admin)
  const ca = Buffer.from(parse(admin).clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  const states = newSourceStates(() => {}, place.path)
  const write = (name: string, text: string): string => {
    writeFileSync(join(place.path, name), text, { mode: 0o600 })
    return join(place.path, name)
  }
  const sourceWith = (more: Partial<Source> = {}): Source => ({
    ...{
      name: 'prod',
      kind: 'kubernetes',
      url,
      credential: `file:${join(place.path, 'token')}`,
      writeCredential: null,
    },
    ...{ scheme: null, headers: {}, caFile: write('ca.crt', ca), certFile: null, keyFile: null, options: {} },
    ...{ timeoutSeconds: 60, createdBy: 'ada', createdAt: '2026-11-21T12:00:00Z' },
    ...more,
  })
  const read = async (source: Source, tool: string, args: Record<string, unknown>) => {
    const planned = planRead([source], tool, args)
    if (!planned.ok) throw new Error(planned.reason)
    const answer = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
    return { ...answer, said: planned.tool.say(answer.summary, planned.args) }
  }
  return {
    place: place.path,
    api,
    admin,
    states,
    write,
    sourceWith,
    read,
    probe: (source: Source) => probeSource(source, states),
    forget: () => forgetSource(states, 'prod'),
    /** Applies what is printed, and makes the token that it prints the command of. */
    giveRights: async (namespaces: readonly string[] = []): Promise<string> => {
      for (const document of parseAllDocuments(clusterRights(namespaces))) await apply(api, document.toJSON())
      const path = '/api/v1/namespaces/nightshift/serviceaccounts/nightshift-read/token'
      const made = await api.create(path, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} })
      write('token', made.status.token)
      return made.status.token
    },
    apply: (object: Manifest) => apply(api, object),
    stop: async () => {
      forgetSource(states, 'prod')
      await lab.stop()
      place.remove()
    },
  }
}

const plurals: Record<string, string> = { Ingress: 'ingresses', NetworkPolicy: 'networkpolicies' }

export function pathOfManifest({ apiVersion, kind, metadata }: Manifest): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const place = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
  return `${base}${place}/${plurals[kind] ?? `${kind.toLowerCase()}s`}`
}

/** Makes it, or makes it anew. */
async function apply(api: ClusterApi, object: Manifest): Promise<void> {
  const path = pathOfManifest(object)
  const there = await api.find(`${path}/${object.metadata.name}`)
  if (!there) await api.create(path, object)
  else if (/Role/.test(object.kind))
    await api.change(`${path}/${object.metadata.name}`, (known) =>
      Object.assign(known, { ...object, metadata: known.metadata }),
    )
}
