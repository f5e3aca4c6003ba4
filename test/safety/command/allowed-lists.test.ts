import { beforeAll, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/** Where a list of what is forbidden stood in for a list of what is allowed: verbs, fields, kinds, names, and what scripts open. */

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', 'backups']) }
const verdictOf = (text: string) => judgeCommand(text, context).verdict

beforeAll(loadSql)

test.each([
  ['a script that opens a name runs what ends in a bar', "mysqldumpslow 'touch /x|'"],
  ['and what begins with one', "mysqldumpslow '|touch /x'"],
  ['and writes what begins with an arrow', "mysqldumpslow '>/srv/x'"],
  ['blanks in front change nothing', "mysqldumpslow ' > /srv/x'"],
  ['the same in a container', `docker exec web mysqldumpslow 'touch /x|'`],
  ['busybox sets the clock', "busybox date '2030-01-01 00:00'"],
  ['by seconds as well', 'busybox date @0'],
  ['plain date is busybox on Alpine', "date '2030-01-01'"],
  ['a brick is written to', 'gluster volume top gv0 write-perf bs 1048576 count 100000'],
  ['a brick is read for long', 'gluster volume top gv0 read-perf bs 1048576 count 100000'],
  ['a queue is declared and published to', 'curl http://localhost:15672/api/aliveness-test/prod'],
  ['a service is started', 'busctl tree org.freedesktop.hostname1'],
  ['a signature is checked by a program', 'git log --format=%G?'],
  ['beta stands before the same groups', 'gcloud beta run services describe api'],
  ['alpha does', 'gcloud alpha functions describe f'],
  ['a header of a job', 'gcloud scheduler jobs describe j'],
  ['secrets of CHAP', 'aws storagegateway describe-chap-credentials --target-arn x'],
  ['keys of BGP', 'aws directconnect describe-virtual-interfaces'],
  ['parameters of commands', 'aws ssm list-commands'],
  ['arguments of steps', 'aws emr list-steps --cluster-id x'],
  ['user data of spot requests', 'aws ec2 describe-spot-instance-requests'],
  ['keys of devices', 'az iot hub device-identity show -n h -d d'],
  ['a script', 'az vm run-command show -g g --vm-name v --name n'],
  ['a start task', 'az batch pool show --pool-id p'],
  ['what a probe sends', "kubectl get pod web -o jsonpath='{.spec.containers[*].livenessProbe}'"],
  ['the token of a log driver', "docker inspect --format '{{json .HostConfig.LogConfig}}' web"],
  ['labels of containers', "docker ps --format '{{.Labels}}'"],
  ['one label', `docker ps --format '{{.Label "x"}}'`],
  ['everything of a container', "docker ps --format '{{json .}}'"],
  ['everything, by a word', 'docker ps --format json'],
  ['the environment in a description', 'kubectl describe pod web'],
  ['a kind that nobody knows', 'kubectl describe helmrelease web'],
  ['a list with one', 'kubectl describe node,helmrelease web'],
  ['the values of an application', 'argocd app get web -o yaml'],
  ['the environment of a crash', 'coredumpctl -F COREDUMP_ENVIRON'],
  ['the same from the journal', 'journalctl -F COREDUMP_ENVIRON'],
  ['among others', 'journalctl -n 5 --output-fields=MESSAGE,COREDUMP_ENVIRON'],
  ['all fields', 'journalctl -n 5 -o json'],
  ['all fields by another form', 'journalctl -n 5 -o verbose'],
  ['the command line under another name', 'jcmd 1 VM.info'],
  ['a configuration that is typed in', "vtysh -c 'show configuration candidate'"],
  ['a password under a name of its own', 'git config --get imap.pass'],
  ['a name of a bucket', 'aws s3 ls s3://c2VjcmV0/'],
  ['the same as an option', 'aws s3api head-bucket --bucket c2VjcmV0'],
  ['the home of a user that nobody here knows', 'cat ~backup/x'],
  ['a link that leads to private keys', 'cat /usr/lib/ssl/private/x'],
  ['a tree with such a link', 'rg -L x /usr/lib/ssl'],
  ['a name that a hidden folder may hold', 'find /srv -name hosts.yml -exec awk 1 {} +'],
  ['another one', "find /home -name 'known_hosts' -exec cat {} +"],
  ['a limit of time that busybox reads otherwise', 'busybox timeout -k 1 5 tail -f /var/log/syslog'],
  ['a date that is looked up as a name', 'ss 2026-11-26'],
  ['the same, made', 'ss $(date +%F)'],
  ['every object of a bucket', 'aws s3 ls s3://backups/ --recursive'],
])('%s: %s asks', (_, text) => expect(verdictOf(text)).not.toBe('run'))

test.each([
  '/etc/drbd.d/r0.res',
  '/etc/nut/upsd.users',
  '/etc/pgbackrest.conf',
  '/etc/nova/nova.conf',
  '/etc/odoo/odoo.conf',
  '/etc/zypp/credentials.d/x',
  '/srv/pillar/top.sls',
  '/etc/ansible/group_vars/all.yml',
  '/home/app/.databrickscfg',
  '/home/app/.credentials_rsaparams',
])('what a file of this kind holds is asked about: %s', (path) => expect(verdictOf(`cat ${path}`)).not.toBe('run'))

test.each(['/etc/php', '/etc/fail2ban', '/etc/pam.d', '/etc/profile.d', '/etc/rsyslog.d', '/etc/yum.repos.d'])(
  'a directory with passwords in some of its files is not read as a whole: %s',
  (path) => expect(verdictOf(`grep -r timeout ${path}`)).not.toBe('run'),
)

test.each([
  ['sqlite3 /srv/app.db "SELECT 1"', "sqlite3 -readonly /srv/app.db 'SELECT 1'"],
  ['sqlite3 /srv/app.db "DELETE FROM t"', null],
  ['sqlite3 /etc/shadow "SELECT 1"', null],
])('an option with which a program only looks is put in by code: %s', (text, rewrite) =>
  expect(judgeCommand(text, context)).toMatchObject({ verdict: 'ask', rewrite }),
)

test.each([
  'fping -C 100000 db1',
  'iotop -b -n 100000',
  'jstat -gc 1 1000 100000',
  'docker events --until 2099-01-01',
  'kubectl rollout status deploy/web --timeout=999h',
  'systemd-analyze calendar --iterations=100000000 minutely',
  'curl --retry 99999999 http://localhost/health',
  "timeout --foreground 5 bash -c 'tail -f /var/log/syslog; true'",
  'redis-cli scan 0 count 1000000000',
  'redis-cli memory usage k samples 0',
  'kcat -b db1 -t orders -C -e',
])('a bound that is none asks: %s', (text) => expect(verdictOf(text)).not.toBe('run'))

test.each([
  'fping -C 3 db1',
  'iotop -b -n 2',
  'kubectl rollout status deploy/web --timeout=30s',
  'curl --retry 2 http://localhost/health',
  "redis-cli scan 0 match 'a:*' count 100",
  'redis-cli memory usage k samples 5',
  'kcat -b db1 -t orders -C -c 5 -e',
])('a bound that is one does not: %s', (text) => expect(verdictOf(text)).toBe('run'))

test.each([
  'mysqldumpslow -s t -t 10 /var/log/mysql/slow.log',
  'date +%s',
  'date -u',
  'busybox df -h',
  'busybox ps',
  'gluster volume top gv0 read',
  'curl -s http://localhost:15672/api/overview',
  'busctl status org.freedesktop.hostname1',
  "git log --format='%h %an %s' -n 5",
  "gcloud beta run services describe api --format='value(status.url)'",
  'gcloud compute instances list',
  'aws ec2 describe-instances --instance-ids i-1',
  'aws s3 ls s3://backups/db/',
  'az vm list -o table',
  "kubectl get pod web -o jsonpath='{.spec.containers[*].livenessProbe.periodSeconds}'",
  "docker inspect --format '{{.HostConfig.LogConfig.Type}}' web",
  "docker ps --format 'table {{.Names}}\\t{{.Status}}'",
  'kubectl describe node worker-1',
  'kubectl describe svc web',
  'argocd app get web',
  'coredumpctl list',
  'journalctl -n 5 -o json --output-fields=MESSAGE,PRIORITY',
  'journalctl -n 50 -o short-iso --no-pager',
  'git config --get core.bare',
])('%s runs unasked', (text) => expect(verdictOf(text)).toBe('run'))
