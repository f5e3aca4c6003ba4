import { expect, test } from '@jest/globals'
import { type Impact, impactFacts, impacts } from '../../../safety/command/impact.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'

const context = { knownHosts: new Set<string>(['h']), knownNames: new Set(['web']) }
const rows: Record<Exclude<Impact, 'look'>, string[]> = {
  create: [
    'touch /tmp/a',
    'mkdir -p /srv/a',
    'systemctl start nginx',
    'docker run nginx',
    'cp a b',
    'kubectl apply -f a.yaml',
  ],
  change: [
    'sed -i s/a/b/ /etc/app.conf',
    'chmod 600 /srv/a',
    'systemctl reload nginx',
    'sysctl -w vm.swappiness=10',
    'kubectl label pod a b=c',
    'tee -a /srv/a < /dev/null',
    'echo a >> /srv/a',
    'echo a > /tmp/a',
    'mv /tmp/a /tmp/b',
  ],
  unknown: ['frobnicate', './deploy.sh', 'python3 -c "import os"', 'acme-cli --all'],
  install: ['apt-get install -y htop', 'dnf upgrade', 'rpm -U a.rpm', 'pip3 install a', 'apk add a'],
  rights: [
    'chmod 777 /etc/shadow',
    'chmod 644 /etc/ssl/private/a.key',
    'chown www-data /var/lib/mysql/ibdata1',
    'chmod 666 /srv/a',
    'chmod o+w /srv/a',
    'chmod 4755 /srv/a',
    'chmod u+s /srv/a',
    'chown -R app /srv/app',
    'setfacl -R -m u:app:rwx /srv',
  ],
  stop: [
    'systemctl stop mysql',
    'systemctl restart nginx',
    'service nginx restart',
    'kill 4242',
    'pkill -f worker',
    'docker stop web',
    'kubectl rollout restart deploy/web',
    'kubectl scale deploy/web --replicas=0',
  ],
  remove: [
    'rm /var/log/old.log',
    'docker rm web',
    'kubectl delete pod web-1',
    'apt-get remove htop',
    'truncate -s 0 /srv/a.log',
    'echo x > /var/lib/mysql/ibdata1',
    ': > /srv/a.log',
    'echo a &> /srv/a',
    'tee /srv/a < /dev/null',
    'mv /srv/a /tmp/x',
    'mv /tmp/x /srv/a',
    'echo a > /tmp/../srv/a',
    'psql -c "delete from jobs"',
    'redis-cli del a',
  ],
  destroy: [
    'rm -r /srv/data',
    'rm -rf ./build',
    'docker volume rm data',
    'docker system prune -af',
    'docker compose down -v',
    'kubectl delete ns shop',
    'kubectl delete pvc data',
    'psql -c "drop table jobs"',
    'mysql -e "truncate table jobs"',
    'redis-cli flushall',
    'zfs destroy tank/a@monday',
    'find /srv -name "*.bak" -delete',
    'userdel anna',
    'git clean -fdx',
    'terraform apply',
    'rsync -a --delete a/ b/',
    'crontab -r',
    'lvremove vg/a',
  ],
  sever: [
    'iptables -F',
    'iptables -A INPUT -j DROP',
    'ip link set eth0 down',
    'ip route del default',
    'qm stop 101',
    'virsh shutdown web',
    'pct reboot 101',
    'kubectl drain node-1',
    'umount /srv',
    'zpool export tank',
    'nmcli con down eth0',
    'ufw reset',
  ],
}

test.each(Object.entries(rows).flatMap(([impact, commands]) => commands.map((command) => [command, impact] as const)))(
  '%s: %s',
  (command, impact) => {
    const verdict = judgeCommand(command, context)
    expect(verdict.verdict).not.toBe('run')
    expect(verdict.impact).toBe(impact)
  },
)

test('the worst of several impacts decides, at any place', () => {
  for (const text of [
    'touch a && systemctl stop mysql',
    'for s in a b; do systemctl stop $s; done',
    'echo $(systemctl stop mysql)',
    "sh -c 'touch a; systemctl stop mysql'",
    "ssh h 'systemctl stop mysql'",
    'timeout 5 systemctl stop mysql',
  ]) {
    expect([text, judgeCommand(text, context).impact]).toEqual([text, 'stop'])
  }
})

test('a read has no impact, and a name of an object is no program', () => {
  expect(judgeCommand('df -h | sort', context)).toMatchObject({ verdict: 'run', impact: 'look' })
  for (const name of ['toString', 'constructor', '__proto__'])
    expect(judgeCommand(name, context).impact).toBe('unknown')
})

test('the risk never falls from one class to the next', () => {
  const order = ['none', 'low', 'medium', 'high', 'critical']
  const risks = impacts.map((impact) => order.indexOf(impactFacts[impact].risk))
  expect(risks).toEqual([...risks].sort((a, b) => a - b))
  expect([impactFacts.sever.risk, impactFacts.destroy.risk]).toEqual(['critical', 'critical'])
})
