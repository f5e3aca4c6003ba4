# What world.pl asks of the kernel itself, by the numbers of x86-64: calls, mounts, a filter that tells of calls which would change the machine, the network
# of a world and a resolver in it.
use strict;
use warnings;
use Socket ();

my %nr = (mount => 165, umount => 166, pivot_root => 155, unshare => 272, prlimit => 302, seccomp => 317, pidfd_open => 434, pidfd_getfd => 438);
our %flag = (NEWNS => 0x20000, NEWUTS => 0x04000000, NEWIPC => 0x08000000, NEWUSER => 0x10000000, NEWPID => 0x20000000, NEWNET => 0x40000000);
our ($RDONLY, $NOSUID, $NODEV, $NOEXEC, $BIND, $REC, $PRIVATE) = (1, 2, 4, 8, 0x1000, 0x4000, 0x40000);

sub call {
  my ($name, @words) = @_;
  my $result = syscall($nr{$name}, @words);
  die "$name @words: $!\n" if $result == -1;
  return $result;
}

sub mount {
  my ($source, $target, $type, $flags, $data) = @_;
  $data //= '';
  my $result = syscall($nr{mount}, $source, $target, $type, $flags + 0, $data);
  die "mount $target: $!\n" if $result == -1;
}

sub slurp { my ($path) = @_; open my $file, '<:raw', $path or return ''; local $/; return scalar <$file> // '' }

# Calls that change the machine, by number (x86-64). What is told of them decides whether they pass.
my %changing = (
  164 => 'settimeofday', 227 => 'clock_settime', 159 => 'adjtimex', 305 => 'clock_adjtime', 169 => 'reboot', 175 => 'init_module',
  313 => 'finit_module', 176 => 'delete_module', 246 => 'kexec_load', 320 => 'kexec_file_load', 167 => 'swapon', 168 => 'swapoff',
  170 => 'sethostname', 171 => 'setdomainname', 163 => 'acct', 103 => 'syslog', 165 => 'mount', 166 => 'umount2', 429 => 'move_mount',
  442 => 'mount_setattr', 155 => 'pivot_root', 62 => 'kill', 200 => 'tkill', 424 => 'pidfd_send_signal', 141 => 'setpriority',
  251 => 'ioprio_set', 203 => 'sched_setaffinity', 144 => 'sched_setscheduler', 314 => 'sched_setattr', 302 => 'prlimit64', 101 => 'ptrace',
);

sub load_filter {
  my @numbers = sort { $a <=> $b } keys %changing;
  # Loads the number of the call; each of these is told to the world's first process, which decides; all others pass.
  my @program = (pack('SCCL', 0x20, 0, 0, 0));
  push @program, pack('SCCL', 0x15, $#numbers - $_ + 1, 0, $numbers[$_]) for 0 .. $#numbers;
  push @program, pack('SCCL', 0x06, 0, 0, 0x7fff0000), pack('SCCL', 0x06, 0, 0, 0x7fc00000);
  my $filter = join '', @program;
  my $header = pack('Sx6P', scalar @program, $filter);
  return call('seccomp', 1, 8, $header);
}

sub number_at { my ($pid, $address) = @_; open my $memory, '<:raw', "/proc/$pid/mem" or return -1; sysseek $memory, $address, 0; sysread $memory, my $bytes, 4; return defined $bytes && length $bytes == 4 ? unpack 'L', $bytes : -1 }

# Null where a call changes nothing outside of the text's own processes.
sub why_change {
  my ($pid, $number, $others, @words) = @_;
  my $name = $changing{$number};
  my $is_other = sub { my $to = unpack 'l', pack 'L', $_[0] & 0xffffffff; return $to == -1 || exists $others->{$to} };
  if ($name eq 'adjtimex' || $name eq 'clock_adjtime') { return number_at($pid, $words[$name eq 'adjtimex' ? 0 : 1]) ? $name : undef }
  if ($name eq 'syslog') { return $words[0] >= 4 && $words[0] <= 8 ? "syslog $words[0]" : undef }
  if ($name eq 'kill' || $name eq 'tkill') { return $words[1] && $is_other->($words[0]) ? "signal $words[1] to $words[0]" : undef }
  if ($name eq 'setpriority' || $name eq 'ioprio_set') { return $words[1] && $is_other->($words[1]) ? "$name $words[1]" : undef }
  if ($name =~ /^sched_/) { return $words[0] && $is_other->($words[0]) ? "$name $words[0]" : undef }
  if ($name eq 'prlimit64') { return $words[2] && $is_other->($words[0]) ? "prlimit $words[0]" : undef }
  if ($name eq 'ptrace') { return ($words[0] == 16 || $words[0] == 0x4206) && $is_other->($words[1]) ? "ptrace $words[1]" : undef }
  return $name;
}

# Answers one call that waits: it goes on, or is told that it is not permitted.
sub answer_call {
  my ($listener, $others, $facts) = @_;
  my $notice = "\0" x 80;
  ioctl($listener, 0xc0502100, $notice) or return;
  my ($id, $pid, undef, $number, undef, undef, @words) = unpack 'QLLlLQQ6', $notice;
  my $why = why_change($pid, $number, $others, @words);
  $facts->{"call $why"} = 1 if defined $why;
  my $answer = pack 'QqlL', $id, 0, (defined $why ? -1 : 0), (defined $why ? 0 : 1);
  ioctl($listener, 0xc0182101, $answer);
}

sub no_routes {
  my ($names, $numbers) = grep { /^Ip:/ } split /\n/, slurp('/proc/net/snmp');
  my %four; @four{split ' ', $names // ''} = split ' ', $numbers // '';
  my ($six) = slurp('/proc/net/snmp6') =~ /Ip6OutNoRoutes\s+(\d+)/;
  return ($four{OutNoRoutes} // 0) + ($six // 0);
}

# A resolver that knows no name and tells which it was asked for.
our $resolver;
sub open_resolver {
  socket $resolver, Socket::PF_INET, Socket::SOCK_DGRAM, 0 or die "resolver: $!\n";
  bind $resolver, Socket::pack_sockaddr_in(53, Socket::inet_aton('127.0.0.53')) or die "resolver: $!\n";
}

sub answer_name {
  my ($facts) = @_;
  my $from = recv $resolver, my $question, 4096, 0;
  return unless defined $from && length $question > 12;
  my ($name, $at) = ('', 12);
  while ($at < length $question && (my $length = ord substr $question, $at, 1)) { $name .= '.' if $name ne ''; $name .= substr $question, $at + 1, $length; $at += $length + 1 }
  $facts->{"asked $name"} = 1;
  # The same question as an answer: there is no such name.
  my ($id, $flags) = unpack 'nn', $question;
  send $resolver, pack('nnnnnn', $id, 0x8183 | ($flags & 0x0100), 1, 0, 0, 0) . substr($question, 12, $at + 5 - 12), 0, $from;
}

# The loopback alone, with the addresses of the known hosts, and a name.
sub begin_network {
  socket my $any, Socket::PF_INET, Socket::SOCK_DGRAM, 0 or die "network: $!\n";
  my $up = pack 'a16sx22', 'lo', 0x41;
  ioctl $any, 0x8914, $up or die "loopback: $!\n";
  my $count = 0;
  for (qw(10.0.0.1 10.0.0.5)) {
    my $address = pack 'a16Sna4x16', 'lo:' . ++$count, 2, 0, Socket::inet_aton($_);
    ioctl $any, 0x8916, $address or die "address: $!\n";
  }
  my $name = 'web-1';
  syscall 170, $name, length $name;
}

1;
