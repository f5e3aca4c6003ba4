import { describe, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { namesListed } from '../../../safety/command/listed-names.ts'

const table = (...lines: string[]) => `${lines.join('\n')}\n`
const containers = table(
  'CONTAINER ID   IMAGE          COMMAND                  CREATED       STATUS       PORTS      NAMES',
  '3f2a1b4c5d6e   nginx:1.25     "/entry.sh ngi…"         2 hours ago   Up 2 hours   80/tcp     web',
  'aa2a1b4c5d6e   redis          "redis    --x -t evil"   2 hours ago   Up 2 hours              cache,web/cache',
)
const pods = table('NAME    READY   STATUS    RESTARTS   AGE', 'web-0   1/1     Running   0          5d')
const everywhere = table('NAMESPACE   NAME    READY   STATUS', 'prod        web-0   1/1     Running')

describe('names that a command listed', () => {
  test.each([
    ['docker ps -a', containers, 'docker::3f2a1b4c5d6e docker::web docker::aa2a1b4c5d6e docker::cache'],
    ['docker ps -q', '3f2a1b4c5d6e\n', 'docker::3f2a1b4c5d6e'],
    ["docker ps --format '{{.Names}}'", 'web\ncache\n', 'docker::web docker::cache'],
    [
      'podman container ls',
      containers.replace(/web\/cache/, 'x'),
      'podman::3f2a1b4c5d6e podman::web podman::aa2a1b4c5d6e podman::cache podman::x',
    ],
    ['docker compose -p shop ps --services', 'api\n', 'service:-p=shop:api'],
    ['kubectl get pods', pods, 'pod::web-0'],
    ['kubectl -n prod get po -o wide', pods, 'pod:prod:web-0'],
    ['kubectl get pods -A', everywhere, 'pod:prod:web-0'],
    ['kubectl get deploy -n prod -o name', 'deployment.apps/api\n', 'pod:prod:deployment/api'],
    ['kubectl get pods --no-headers', 'web-0 1/1 Running\n', 'pod::web-0'],
    ['crictl ps', 'CONTAINER      IMAGE   CREATED\n3f2a1b4c5d6e7   x   now\n', 'crictl::3f2a1b4c5d6e7'],
    ['pct list', 'VMID       Status     Lock         Name\n101        running                 web\n', 'pct::101'],
    ['ip netns list', 'blue (id: 0)\nred\n', 'netns::blue netns::red'],
    ['aws s3 ls', '2026-01-02 03:04:05 backups\n', 'bucket::backups'],
    ['gsutil ls', 'gs://backups/\n', 'bucket::backups'],
  ])('%s', (command, output, names) => expect(namesListed(command, output).join(' ')).toBe(names))

  test.each([
    ['what a log says', 'docker logs web', containers],
    ['what a file says', 'cat /var/log/x', containers],
    ['what a pipe made of it', 'docker ps | tail -n 3', containers],
    ['a second command', 'docker ps; cat /var/log/x', containers],
    ['a substitution', 'docker ps $(cat /x)', containers],
    ['a format of its own', "docker ps --format '{{.Command}}'", 'web\n'],
    ['labels', 'docker ps --format \'{{.Label "x"}}\'', 'web\n'],
    ['a table without its header', 'docker ps', 'a b c web\n'],
    ['columns of its own', 'kubectl get pods -o custom-columns=NAME:.metadata.annotations.x', pods],
    ['whole objects', 'kubectl get pods -o yaml', pods],
    ['other kinds', 'kubectl get configmaps', pods],
    ['several kinds', 'kubectl get pods web-0', pods],
    ['an option that is not known', 'kubectl get pods --template x', pods],
    ['what lies in a bucket', 'aws s3 ls s3://backups', '2026-01-02 03:04:05 5 x\n'],
    ['names with a blank or a slash', 'docker ps --format {{.Names}}', 'a b\n../x\n-x\n'],
    ['a name that is too long', 'docker ps --format {{.Names}}', `${'x'.repeat(254)}\n`],
  ])('are none of %s', (_, command, output) => expect(namesListed(command, output)).toEqual([]))

  test('are at most two hundred', () => {
    const many = Array.from({ length: 300 }, (_, at) => `web-${at}`).join('\n')
    expect(namesListed("docker ps --format '{{.Names}}'", many).length).toBe(200)
  })
})

describe('a name is known', () => {
  const judged = (text: string, ...names: string[]) =>
    judgeCommand(text, { knownHosts: new Set(), knownNames: new Set(names) })

  test.each([
    ['docker exec web df -h', 'docker::web'],
    ['kubectl exec -n prod web-0 -- df -h', 'pod:prod:web-0'],
    ['kubectl -n=prod exec pod/web-0 -c app -- df -h', 'pod:prod:web-0'],
    ['kubectl exec deploy/api -- df -h', 'pod::deployment/api'],
    ['pct exec 101 -- df -h', 'pct::101'],
    ['pct exec 101 -- df -h', '101'],
    ['crictl exec 3f2a1b4c5d6e df -h', 'crictl::3f2a1b4c5d6e'],
    ['aws s3 ls s3://backups/daily/', 'bucket::backups'],
  ])('%s with %s', (text, name) => expect(judged(text, name)).toMatchObject({ verdict: 'run', names: [name] }))

  test.each([
    ['docker exec web df -h', 'podman::web'],
    ['kubectl exec -n prod web-0 -- df -h', 'pod::web-0'],
    ['kubectl exec -n prod web-0 -- df -h', 'pod:test:web-0'],
    ['kubectl exec --context other -n prod web-0 -- df -h', 'pod:prod:web-0'],
    ['kubectl exec web-0 -- df -h', 'pod::deployment/web-0'],
    ['pct exec 101 -- df -h', 'docker::101'],
    ['aws s3 ls s3://backups/', 'docker::backups'],
    ['docker exec web rm /srv/x', 'docker::web'],
    ['docker exec web git -C /srv status', 'docker::web'],
    ['docker exec web cat /root/.ssh/id_rsa', 'docker::web'],
  ])('not %s with %s', (text, name) => expect(judged(text, name).verdict).toBe('ask'))
})
