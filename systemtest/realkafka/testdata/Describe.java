import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

/** Describe BROKERS: prints how many nodes the cluster has. */
public class Describe {
  public static void main(String[] args) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
      System.out.println("nodes " + admin.describeCluster().nodes().get().size());
    }
  }
}
