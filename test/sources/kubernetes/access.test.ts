import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { readKubeconfig } from '../../../clients/kubernetes/kubeconfig.ts'
import { readAccess } from '../../../sources/kubernetes/access.ts'
import { sourceOf, useCluster } from './site.ts'

const { stage, write } = useCluster()

const config = (user: string, cluster = 'server: https://api.example.com:6443') => `
apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
contexts: [{ name: main, context: { cluster: c, user: u } }, { name: other, context: { cluster: c, user: missing } }]
current-context: main
`

const sourceWith = (text: string, more = {}) =>
  sourceOf('https://api.example.com:6443', { credential: `file:${write('kubeconfig', text)}`, ...more })

const rights = 'apply the ServiceAccount, ClusterRole and binding that "nightshift sources rights kubernetes" prints'

test.each([
  [
    'aws',
    'exec: { command: aws, args: [eks, get-token], apiVersion: client.authentication.k8s.io/v1 }',
    'by running aws, as kubeconfigs of EKS do, and Nightshift runs no such program',
  ],
  [
    'gke',
    'exec: { command: /usr/bin/gke-gcloud-auth-plugin }',
    'by running gke-gcloud-auth-plugin, as kubeconfigs of GKE do',
  ],
  ['kubelogin', 'exec: { command: kubelogin }', 'by running kubelogin, as kubeconfigs of AKS do'],
  ['a command of somebody', 'exec: { command: "/tmp/x; rm -rf /" }', 'runs no such program'],
  ['a plugin without a command', 'exec: 1, token: abcdefgh', 'by running a program'],
  [
    'an auth-provider',
    'auth-provider: { name: gcp }',
    'from the auth-provider gcp, and Nightshift runs no such program',
  ],
  ['a password', 'username: ada, password: planted-password', 'has a user name and a password'],
  ['another user', 'token: abcdefgh, as: "system:admin"', 'impersonates another user'],
])('a kubeconfig with %s is refused with the account that replaces it', (_, user, said) => {
  const refused = () => readAccess(sourceWith(config(user)), stage.directory)
  expect(refused).toThrow(said)
  expect(refused).toThrow(rights)
  expect(refused).toThrow('kubectl -n nightshift create token nightshift-read')
  expect(refused).not.toThrow('planted')
})

test.each([
  [
    'insecure-skip-tls-verify',
    'server: https://api.example.com:6443, insecure-skip-tls-verify: true',
    'skips the check of the certificate',
  ],
  ['a proxy', 'server: https://api.example.com:6443, proxy-url: "http://proxy:3128"', 'uses a proxy'],
  [
    'another name for TLS',
    'server: https://api.example.com:6443, tls-server-name: x',
    'expects a name in the certificate',
  ],
  [
    'another server',
    'server: https://elsewhere.example.com',
    'is for another server in its context main: give that address, --at https://elsewhere.example.com, or',
  ],
  [
    'a password in the address of its server',
    'server: "https://ada:planted-password@elsewhere.example.com/?token=planted"',
    'is for another server in its context main: give that address, --at https://elsewhere.example.com, or',
  ],
  ['an address that is none', 'server: "elsewhere:6443"', 'has a server with an invalid address in its context main'],
])('a kubeconfig with %s is refused', (_, cluster, said) => {
  const refused = () => readAccess(sourceWith(config('token: abcdefgh', cluster)), stage.directory)
  expect(refused).toThrow(said)
  expect(refused).not.toThrow('planted')
})

test('a kubeconfig on one line is read as one, and never sent as a token', () => {
  const text = JSON.stringify(parse(config('token: abcdefgh')))
  expect(readAccess(sourceWith(text), stage.directory).server.token).toBe('abcdefgh')
})

test.each([
  ['a key', '-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----'],
  ['an answer of kubectl', '{"kind":"TokenRequest","status":{"token":"planted-token"}}'],
  ['words', 'token: planted-token'],
])('a credential that is %s is no token, and is not sent', (_, text) => {
  expect(() => readAccess(sourceWith(text), stage.directory)).toThrow(/^prod: its kubeconfig (?:is no|has no)/)
  const file = write('other', text)
  expect(() => readAccess(sourceWith(config(`tokenFile: ${file}`)), stage.directory)).toThrow(
    'has another credential than a token for its context main',
  )
})

test('a context is chosen by its name, and an unknown one is refused with the known names', () => {
  const text = config('token: abcdefgh')
  expect(readKubeconfig(text, 'main').token).toEqual({ text: 'abcdefgh' })
  expect(() => readKubeconfig(text, 'prod')).toThrow('has no context prod: there is main, other')
  expect(() => readKubeconfig(text, 'other')).toThrow('has no user for its context other')
})

test('a file that a kubeconfig names is read below the directory of sources, and nowhere else', () => {
  const inside = write('rotating', 'a-token-that-rotates')
  const access = readAccess(sourceWith(config(`tokenFile: ${inside}`)), stage.directory)
  expect(access.server.token).toBe('a-token-that-rotates')
  expect(() => readAccess(sourceWith(config('tokenFile: /etc/hostname')), stage.directory)).toThrow(
    'the file /etc/hostname is not below',
  )
})

test('anchors in a kubeconfig make no large value of a small text', () => {
  const bomb = `a: &a [x, x, x]\nb: &b [*a, *a]\nclusters: [*b, *b]\n`
  expect(() => readKubeconfig(bomb, null)).toThrow('is not a kubeconfig in YAML or JSON')
})

test('a token is not sent unencrypted to another machine', () => {
  const token = `file:${write('plain', 'a-token')}`
  expect(() => readAccess(sourceOf('http://api.example.com:8080', { credential: token }), stage.directory)).toThrow(
    'prod needs an address that begins with https',
  )
})

test("the pod's own account is sent to its own cluster alone, and its token is read each time", () => {
  const account = stage.directory
  const ca = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----'
  write('ca.crt', ca)
  const own = sourceOf('https://kubernetes.default.svc', { options: { account: 'in-cluster' } })
  expect(readAccess(own, '/nowhere', account).server).toMatchObject({ token: 'token-of-a-test', ca })
  write('token', 'rotated-token')
  expect(readAccess(own, '/nowhere', account).server.token).toBe('rotated-token')
  const elsewhere = sourceOf('https://evil.example.com', { options: { account: 'in-cluster' } })
  expect(() => readAccess(elsewhere, '/nowhere', account)).toThrow('for the cluster of the pod')
})

test('without a credential the source names what it needs', () => {
  expect(() => readAccess(sourceOf('https://api.example.com'), stage.directory)).toThrow(
    'there is no kubeconfig, token or certificate: nightshift sources add prod --kind kubernetes --at https://api.example.com --timeout 60 --credential REF',
  )
})
