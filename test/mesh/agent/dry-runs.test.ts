import { expect, test } from '@jest/globals'
import { dryRunOf, dryRuns } from '../../../mesh/agent/dry-runs.ts'
import { argvVerdict } from '../../../mesh/agent/guard.ts'

const of = (command: string) => {
  const words = command.split(' ')
  return dryRunOf(words[0]!, words, '/', [])
}

const rows: [string, string][] = [
  ['systemctl restart --no-block nginx', 'systemctl show --no-pager --property='],
  ['service nginx restart', 'systemctl show --no-pager --property='],
  ['apt-get install -y nginx', 'apt-get --simulate -y install -- nginx'],
  ['apt remove nginx', 'apt-get --simulate remove -- nginx'],
  ['dpkg -r nginx', 'dpkg --no-act -r -- nginx'],
  ['rsync -a --delete /a/ /b/', 'rsync --dry-run --itemize-changes -a --delete -- /a/ /b/'],
  ['find /srv -name x -delete', 'find /srv -name x -print'],
  ['pkill -9 -f worker', 'pgrep -a -f worker'],
  ['killall -TERM nginx', 'pgrep -a -x -- nginx'],
  ['docker rm -f web', 'docker ps --all --filter name=^web$'],
  ['podman stop web', 'podman ps --all --filter name=^web$'],
  ['sysctl -w vm.swappiness=10', 'sysctl vm.swappiness'],
  ['umount /mnt', 'findmnt -- /mnt'],
  ['userdel anna', 'id -- anna'],
  ['deluser anna', 'id -- anna'],
  ['usermod -L anna', 'id -- anna'],
  ['qm stop 100', 'qm status 100'],
  ['pct shutdown 101', 'pct status 101'],
  ['tar -xzf /srv/a.tgz -C /srv/b', 'tar --list --file=/srv/a.tgz'],
  ['kubectl delete pod x --namespace=a', 'kubectl get --namespace=a -- pod x'],
  ['logrotate /etc/logrotate.conf', 'logrotate -d /etc/logrotate.conf'],
]

test.each(rows)('before %s, %s is run', (command, argv) => {
  const found = of(command)
  expect(found?.argv.join(' ').startsWith(argv)).toBe(true)
  // The judge proves what is no switch of the program.
  if (found?.row.kind !== 'tries') expect(argvVerdict(found?.argv ?? [], '/').verdict).toBe('run')
})

test('every row has its command above, so that each is tested', () => {
  expect([...dryRuns.keys()].filter((name) => !rows.some(([command]) => command.startsWith(`${name} `)))).toEqual([])
})

test.each([
  // Starts a program, another host, or another configuration.
  'rsync -a -e sh /a /b',
  'rsync -a --rsh=sh /a /b',
  'rsync -a --rsync-path=sh /a /b',
  'rsync -a host:/a /b',
  'rsync -a rsync://host/a /b',
  'rsync -a --log-file=/x /a /b',
  'rsync -aM--fake-super /a /b',
  'apt-get -o APT::Update::Pre-Invoke::=id install x',
  'apt-get -c /tmp/apt.conf install x',
  'apt-get install ./x.deb',
  'apt-get update',
  'dpkg -i x.deb',
  'dpkg --root=/x -r y',
  // Would be the thing itself.
  'find /srv -exec rm {} ; -delete',
  'find /srv -fprint /x -delete',
  'find /srv -delete -delete',
  'tar -xf a --to-command=sh',
  'systemctl --host=other restart nginx',
  'systemctl edit nginx',
  'systemctl daemon-reexec',
  'docker exec web sh',
  'docker -H tcp://other rm web',
  'kubectl delete -f https://other/x.yaml',
  'kubectl delete pod x --kubeconfig=/tmp/k',
  'logrotate --state /x /etc/logrotate.conf',
  'pkill --pidfile /etc/shadow x',
  // Their switches start what they are given, or ask the network.
  'make -n all',
  'make all',
  'ansible-playbook site.yml',
  'terraform apply',
  'helm upgrade a b',
  'git push origin main',
  'patch -p1',
])('nothing is run before %s', (command) => {
  expect(of(command)).toBeNull()
})
