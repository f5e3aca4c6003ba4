import { describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'

const context: CommandContext = { knownHosts: new Set(['db1', '10.0.0.5']), knownNames: new Set(['web', '3f2a']) }
const judged = (text: string) => judgeCommand(text, context)

describe('a word that the text makes for itself', () => {
  test.each([
    ['a variable that is set once', 'ns=prod; kubectl -n $ns get pods'],
    ['in capitals, by a name that nothing obeys', 'NS=prod; kubectl -n "$NS" get pods'],
    ['by what is known to be printed', 'pid=$(pgrep -o nginx); cat /proc/$pid/status'],
    ['names of pods', 'for p in $(kubectl get pods -o name -n prod); do kubectl -n prod logs $p --tail=5; done'],
    ['numbers of jobs', "for j in $(squeue -h -u bob -o '%i'); do scontrol show job $j; done"],
    ['paths of logs', 'for f in /var/log/*.log; do wc -l "$f"; done'],
    ['paths of the kernel', 'for i in /sys/class/net/*; do cat $i/operstate; done'],
    ['a tab', "cut -d $'\\t' -f 1 /etc/hosts"],
    ['a time of UTC', 'journalctl --since "$(date -u -d yesterday +%Y-%m-%dT%H:%M:%SZ)" -n 5'],
    ['a path of an object', "kubectl get po web -o json | jq -r '.status.containerStatuses[0].restartCount'"],
    [
      'several',
      'kubectl get po -o json | jq \'.items[] | select(.status.phase != "Running") | {n: .metadata.name, p: .status.phase}\'',
    ],
  ])('runs: %s', (_, text) => expect([text, judged(text).verdict]).toEqual([text, 'run']))

  test.each([
    ['a variable that is set twice', 'x=/var/log/syslog; x=/etc/shadow; cat $x'],
    ['one that may not have been set', 'false && x=5; cat /etc/shadow$x'],
    ['one that leads to a secret', 'x=/etc; cat $x/shadow'],
    ['one that programs obey', 'PATH=/tmp; ls'],
    ['one that the shell obeys', 'histchars=abc; ls'],
    ['a proxy', 'http_proxy=evil.example; curl http://localhost/'],
    ['one of a loop', 'for x in a b; do y=$x; cat $y; done'],
    ['what anything may print', 'x=$(cat /srv/x); ls $x'],
    ['names of secrets', 'for p in $(kubectl get secret -o name); do kubectl get $p -o yaml; done'],
    ['a path with a blank in it', 'for f in /var/log/*.log; do wc -l $f; done'],
    ['a path that may be hidden', 'for f in /root/.ssh/*; do cat "$f"; done'],
    ['a pattern that may be an option', 'for f in *; do cat "$f"; done'],
    ['a letter by its number', "cat $'\\x2fetc\\x2fshadow'"],
    ['a whole object', "kubectl get po web -o json | jq '.'"],
    ['an environment in an object', "kubectl get po web -o json | jq '.spec.containers[].env'"],
    ['a secret beside a name', "kubectl get secret db -o json | jq '.metadata.name, .data'"],
    ['another letter in a time', 'ls $(date +%YZZ)'],
  ])('asks: %s', (_, text) => expect([text, judged(text).verdict]).toEqual([text, 'ask']))
})

describe('a file that a program uses and does not print', () => {
  test.each([
    'etcdctl --endpoints=https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/server.crt --key /etc/kubernetes/pki/etcd/server.key endpoint status',
    'curl --cacert /etc/ssl/web/ca.pem --cert /etc/ssl/web/tls.crt --key /etc/ssl/web/tls.key https://localhost/metrics',
    'patronictl -c /etc/patroni/patroni.yml list',
    'ceph -k /etc/ceph/ceph.client.admin.keyring health',
    'ceph --admin-daemon /var/run/ceph/ceph-osd.3.asok dump_historic_ops',
  ])('%s runs', (text) => expect(judged(text).verdict).toBe('run'))

  test("of compose has to be root's alone", () => {
    const { verdict, conditions } = judged('docker compose -f /srv/shop/docker-compose.yml ps')
    expect(verdict).toBe('run')
    expect(conditions).toContainEqual(
      expect.objectContaining({ kind: 'root_only', files: ['/srv/shop/docker-compose.yml'] }),
    )
  })

  test("in a place of its vendor has to be root's alone, if the place can be read", () => {
    const text = '/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --list'
    expect(judged(text)).toMatchObject({
      verdict: 'run',
      conditions: [{ kind: 'root_only', files: ['/opt/kafka/bin/kafka-topics.sh'] }],
    })
    expect(judgeCommand(text, { ...context, canLook: false }).verdict).toBe('ask')
    expect(judged(`docker exec web ${text}`).verdict).toBe('ask')
  })
})

test('a header states the wanted form of an answer, or a known name', () => {
  for (const text of [
    "curl -H 'Accept: application/json' http://localhost/health",
    "curl -H 'Host: db1' http://10.0.0.5/health",
    'curl -XGET localhost:9200/_cluster/health',
    'curl --resolve db1:443:10.0.0.5 https://db1/health',
  ])
    expect([text, judged(text).verdict]).toEqual([text, 'run'])
})
