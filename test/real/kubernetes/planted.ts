import { figuresFrom, makeSecrets } from '../../support/made-secrets.ts'

/**
 * Two hundred secrets in an own namespace of a real cluster, by every road on which one may come
 * into an answer.
 */

type Road =
  | 'environment'
  | 'argument'
  | 'annotation'
  | 'last applied'
  | 'config map'
  | 'secret'
  | 'custom resource'
  | 'probe'
  | 'log'
  | 'event'
  | 'end of a container'
  | 'image'
  | 'something else'

export type PlantedSecret = { road: Road; secret: string }

// biome-ignore lint/suspicious/noExplicitAny: a manifest has the shape of its kind
type Manifest = any

const namespace = 'vault'
/** A value hidden by its place may be any text. */
const anything = ['{p20}', '{h32}', '{a24}', '{w4}']
/** What programs write has a form by which it is known. */
const written = [
  'password={p16}',
  'postgresql://app:{p16}@db.example.com/shop',
  'Authorization: Bearer {a40}',
  'api_key: {h32}',
  'aws_secret_access_key={b40}',
  'ghp_{a36}',
  'secret="{p18}"',
  'redis://:{p16}@cache:6379/0',
  'token={a32}',
  'xoxb-{d11}-{d11}-{a24}',
]

export function plant(seed = 35) {
  const next = figuresFrom(seed)
  const planted: PlantedSecret[] = []
  let count = 0
  const make = (road: Road, forms: readonly string[]): string => {
    const { text, secrets } = makeSecrets(forms[count++ % forms.length] as string, next)
    planted.push({ road, secret: secrets[0] ?? text })
    return text
  }
  const many = (road: Road, forms: readonly string[], number: number) =>
    Array.from({ length: number }, () => make(road, forms))
  const environment = many('environment', anything, 24).map((value, at) => ({ name: `SETTING_${at}`, value }))
  const args = many('argument', anything, 19)
  const logs = many('log', written, 30)
  const ends = many('end of a container', written, 6)
  const named = (list: readonly string[]) => Object.fromEntries(list.map((value, at) => [`key-${at}`, value]))
  const annotations = { ...named(many('annotation', anything, 20)) }
  const template = (more: Manifest) => ({
    metadata: { labels: { app: 'safe' }, annotations: named(many('annotation', anything, 6)) },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'app',
          image: 'lab.local/shop:1',
          imagePullPolicy: 'Never',
          ...more,
        },
      ],
    },
  })
  // It says its secrets, leaves one as its last words, and fails.
  const script = [
    ...logs.map((line) => `echo 'error: ${line.replaceAll("'", '')}'`),
    `printf '%s' '${ends.join(' ')}' > /dev/termination-log`,
    'exit 3',
  ].join('\n')
  const deployment = (name: string, more: Manifest, spec: Manifest = {}): Manifest => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace,
      annotations: {
        ...annotations,
        'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
          spec: named(many('last applied', anything, 5)),
        }),
      },
    },
    spec: { replicas: 1, selector: { matchLabels: { app: 'safe' } }, template: template(more), ...spec },
  })
  const probe = {
    httpGet: {
      path: `/health?token=${make('probe', ['{a24}'])}`,
      port: 80,
      httpHeaders: many('probe', anything, 7).map((value, at) => ({ name: `X-Key-${at}`, value })),
    },
    periodSeconds: 1,
  }
  const objects: Manifest[] = [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, annotations: named(many('annotation', anything, 4)) },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings', namespace },
      data: named(many('config map', anything, 20)),
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'no-secrets-here', namespace },
      data: named(many('something else', anything, 6)),
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'settings', namespace },
      stringData: named(many('secret', anything, 14)),
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'safe', namespace, annotations: named(many('annotation', anything, 2)) },
      spec: { selector: { app: 'safe' }, ports: [{ port: 80 }] },
    },
    deployment('safe', {
      command: ['/bin/sh', '-c', script],
      args,
      env: environment,
      envFrom: [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'settings' } }],
    }),
    deployment('pulls', {
      image: 'registry.invalid/private:1',
      imagePullPolicy: 'Always',
      livenessProbe: probe,
      readinessProbe: { exec: { command: ['sh', '-c', make('probe', anything)] } },
    }),
  ]
  const events = many('event', written, 14).map(
    (message, at): Manifest => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `planted-${at}`, namespace },
      involvedObject: { kind: 'Deployment', namespace, name: 'safe', apiVersion: 'apps/v1' },
      type: 'Warning',
      reason: `Planted${at}`,
      message: `hook ${at} said ${message}`,
      firstTimestamp: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
      lastTimestamp: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
      count: 1,
      source: { component: 'planted' },
    }),
  )
  const pulls = many(
    'image',
    [
      'https://robot:{p16}@registry.example.com/v2/',
      'Get "https://registry.example.com/v2/?access_token={a32}": denied',
    ],
    8,
  ).map(
    (text, at): Manifest => ({
      ...events[0],
      metadata: { name: `pull-${at}`, namespace },
      reason: 'Failed',
      message: `Failed to pull image: ${text}`,
    }),
  )
  const definition: Manifest = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'vaults.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'vaults', singular: 'vault', kind: 'Vault' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  }
  const custom: Manifest = {
    apiVersion: 'example.com/v1',
    kind: 'Vault',
    metadata: { name: 'own', namespace },
    spec: named(many('custom resource', anything, 2)),
  }
  return { namespace, planted, objects, events: [...events, ...pulls], definition, custom }
}
