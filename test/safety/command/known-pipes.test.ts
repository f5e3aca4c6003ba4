import { expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'

/**
 * What a pipe hands on: names of a table and lists that lose lines, and nothing that came into it
 * on the way.
 */

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', 'web-0']) }
const judged = (text: string) => judgeCommand(text, context)

test.each([
  "docker ps -a | tail -n +2 | awk '{ print $1}' | xargs docker inspect -f '{{ .State.Pid }}'",
  "docker ps | grep web | awk '{print $NF}' | xargs docker inspect -f '{{.State}}'",
  "docker ps -a --format '{{.Names}}' | xargs -I{} docker inspect -f '{{.State.Status}}' {}",
  "docker ps -q 2>/dev/null | head -3 | xargs docker inspect -f '{{.State}}'",
  "kubectl get pods -n shop | grep Crash | awk '{print $1}' | xargs -I{} kubectl logs {} -n shop --tail=10",
  "kubectl get nodes --no-headers | awk '{print $1}' | xargs -n1 kubectl describe node",
  'kubectl get pods -A | awk \'$4 != "Running" {print $2}\' | xargs -n1 kubectl logs',
  'kubectl logs -n shop $(kubectl get pods -n shop -l app=web -o name | head -1)',
  "kubectl logs -n shop $(kubectl get pods -n shop -o jsonpath='{.items[0].metadata.name}')",
  "for ns in $(kubectl get ns -o jsonpath='{.items[*].metadata.name}'); do kubectl get pods -n $ns; done",
  'for n in $(kubectl get nodes -o name); do kubectl describe $n | grep -i pressure; done',
  'crictl logs $(crictl ps --name etcd -q | head -1)',
])('%s runs without approval', (text) => expect(judged(text).verdict).toBe('run'))

test.each([
  ['a group between prints anything', "docker ps -q | { cat /srv/x; } | xargs docker inspect -f '{{.State}}'"],
  ['a subshell does', "docker ps -q | (cat /srv/x) | xargs docker inspect -f '{{.State}}'"],
  ['one further back', "docker ps -q | { cat /srv/x; } | grep a | xargs docker inspect -f '{{.State}}'"],
  ['errors are no names', "docker ps -q 2>&1 | xargs docker inspect -f '{{.State}}'"],
  ['by another sign', "docker ps -q |& xargs docker inspect -f '{{.State}}'"],
  ['in a substitution', 'kubectl logs $(kubectl get pods -o name 2>&1 | head -1)'],
  ['in one, by the sign', 'kubectl logs $(kubectl get pods -o name |& head -1)'],
  [
    'a socket is told what the group prints',
    "echo 'show info' | { cat /srv/x; } | socat stdio /run/haproxy/admin.sock",
  ],
  ['a group may show the whole object', 'kubectl get pod web-0 -o json | { cat >&2; } | jq .status'],
  ['another stream shows it', 'kubectl get pod web-0 -o json >&2 | jq .status'],
  ['lines of its own', "docker ps -a | grep -A1 x | awk '{print $1}' | xargs docker inspect -f '{{.State}}'"],
  ['a column of strangers', "docker ps -a | awk '{print $2}' | xargs docker inspect -f '{{.State}}'"],
  ['names with commas', "docker ps --no-trunc | awk '{print $NF}' | xargs docker inspect -f '{{.State}}'"],
  ['another file', "docker ps -a | grep x /srv/f | awk '{print $1}' | xargs docker inspect -f '{{.State}}'"],
  ['a file of awk', "docker ps -a | awk '{print $1}' /srv/f | xargs docker inspect -f '{{.State}}'"],
  ['other columns', "docker ps -a | awk -F, '{print $1}' | xargs docker inspect -f '{{.State}}'"],
  ['more than a column', `docker ps -a | awk '{print "-f", $1}' | xargs docker inspect -f '{{.State}}'`],
  ['a list with headers between', "kubectl get pods,secrets | awk '{print $1}' | xargs kubectl logs"],
  ['names that may begin as options do', "kubectl get clusterroles | awk '{print $1}' | xargs kubectl logs"],
  ['what is written on the way', "kubectl get pods | sort -o /srv/x | awk '{print $1}' | xargs kubectl logs"],
  ['another field', "kubectl logs $(kubectl get pods -o jsonpath='{.items[0].spec.nodeName}')"],
  ['a write of what is listed', "kubectl get pods | awk '{print $1}' | xargs kubectl delete pod"],
  ['secrets by their names', 'kubectl get secrets -o name | xargs kubectl get -o yaml'],
  ['a kind that is shown in part', 'kubectl get cm -o name | xargs -n1 kubectl describe'],
])('%s: %s asks', (_, text) => expect(judged(text).verdict).toBe('ask'))

test.each([
  ['kubectl get --raw /healthz?verbose', "kubectl get --raw '/healthz?verbose'"],
  ['ceph tell osd.* version', "ceph tell 'osd.*' version"],
  ['docker exec web curl -s localhost:9200/_cat/nodes?v', "docker exec web curl -q -s 'localhost:9200/_cat/nodes?v'"],
])('a pattern is quoted by code if no path can be there: %s', (text, rewrite) => {
  expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite })
  expect(judged(rewrite).verdict).toBe('run')
})

test.each(['cat *.log', 'cat /root/*', 'ceph tell osd.* bench', 'kubectl get --raw /api/v1/secrets?limit=5'])(
  'a pattern is not quoted if it finds files, or its command does more than read: %s',
  (text) => expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite: null }),
)

test.each([
  "kubectl get pods -A -o json | jq '.items | length'",
  `kubectl get pods -A -o json | jq -r '.items[] | "\\(.metadata.name) \\(.status.phase)"'`,
  "kubectl get nodes -o json | jq -r '.items[] | [.metadata.name, .status.nodeInfo.kubeletVersion] | @tsv'",
])('of a whole object jq shows what it names: %s runs without approval', (text) =>
  expect(judged(text).verdict).toBe('run'),
)

test.each([
  ['the environment', "docker inspect web | jq '.[0].Config.Env'"],
  ['an element is the whole', "docker inspect web | jq '.[0]'"],
  ['all of it', 'docker inspect web | jq .'],
  ['what holds the environment', "docker inspect web | jq '.[0].Config'"],
  ['part of a whole that stood in a pipe', "docker inspect web | jq '.[0].State'"],
  ['a group sees the whole', "docker inspect web | { cat >&2; } | jq '.[0].State'"],
  ['another stream shows the whole', "docker inspect web >&2 | jq '.[0].State'"],
  ['a template of its own', "docker inspect -f '{{.Config.Env}}' web | jq '.[0].State'"],
  ['the whole of it again', 'crictl inspect abc | jq .info'],
  ['in a text', `kubectl get pods -o json | jq -r '.items[] | "\\(.spec.containers[].env)"'`],
  ['everything in a text', `kubectl get pods -o json | jq -r '.items[] | "\\(.)"'`],
  ['a variable', `kubectl get pods -o json | jq -r '.items[] | "\\(env.HOME)"'`],
  ['a count beside the values', "kubectl get cm web -o json | jq '.data, length'"],
  ['a count of secrets', "kubectl get secrets -o json | jq '.items | length'"],
])('%s: %s asks', (_, text) => expect(judged(text).verdict).toBe('ask'))
