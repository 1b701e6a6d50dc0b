import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/** DynamoDB Local as it is, but heard on the loopback address only: it has no option for that. */
public final class Loopback {
    public static void main(String[] words) throws Exception {
        DynamoDBProxyServer proxy = ServerRunner.createServerFromCommandLineArgs(words);
        Field inner = DynamoDBProxyServer.class.getDeclaredField("server");
        inner.setAccessible(true);
        for (Connector each : ((Server) inner.get(proxy)).getConnectors()) {
            ((ServerConnector) each).setHost("127.0.0.1");
        }
        proxy.start();
        proxy.join();
    }
}
